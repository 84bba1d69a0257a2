from .running import (
    Correlations as Correlations,
    SeedResult as SeedResult,
    SweepResult as SweepResult,
    TrialResult as TrialResult,
    run_sweep as run_sweep,
    to_markdown as to_markdown,
)
from .spec import (
    Range as Range,
    SweepSpec as SweepSpec,
    Values as Values,
    load_sweep as load_sweep,
    point_name as point_name,
    point_text as point_text,
)
