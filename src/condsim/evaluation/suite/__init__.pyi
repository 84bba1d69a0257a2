from .data import BY_SET as BY_SET, Suite as Suite, load_suite as load_suite
from .result import PUBLISHED as PUBLISHED, SuiteReport as SuiteReport
from .running import evaluate_suite as evaluate_suite
from .sets import (
    GROUPS as GROUPS,
    SuiteTask as SuiteTask,
    asks_for_number as asks_for_number,
    has_negation as has_negation,
    mark_trained as mark_trained,
)
from .tables import (
    heat_map as heat_map,
    suite_markdown as suite_markdown,
    suite_tables as suite_tables,
)
from .work import default_cache as default_cache
