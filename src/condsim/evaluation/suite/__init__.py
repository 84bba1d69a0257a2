"""The STS suite: many scorers on many data sets in one table (SSBC §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.evaluation.suite.data import (
        Suite as Suite,
        SuiteTask as SuiteTask,
        load_suite as load_suite,
    )
    from condsim.evaluation.suite.published import PUBLISHED as PUBLISHED
    from condsim.evaluation.suite.result import SuiteReport as SuiteReport
    from condsim.evaluation.suite.running import evaluate_suite as evaluate_suite
    from condsim.evaluation.suite.tables import (
        heat_map as heat_map,
        suite_markdown as suite_markdown,
        suite_tables as suite_tables,
    )
    from condsim.evaluation.suite.work import default_cache as default_cache

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "data": "Suite SuiteTask load_suite",
        "published": "PUBLISHED",
        "result": "SuiteReport",
        "running": "evaluate_suite",
        "tables": "heat_map suite_markdown suite_tables",
        "work": "default_cache",
    },
    extra="train",
)
