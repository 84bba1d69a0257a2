from .data import Suite as Suite, SuiteTask as SuiteTask, load_suite as load_suite
from .result import PUBLISHED as PUBLISHED, SuiteReport as SuiteReport
from .running import evaluate_suite as evaluate_suite
from .tables import (
    heat_map as heat_map,
    suite_markdown as suite_markdown,
    suite_tables as suite_tables,
)
from .work import default_cache as default_cache
