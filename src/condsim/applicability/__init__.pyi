from .fitting import (
    SAMPLE as SAMPLE,
    STRENGTH as STRENGTH,
    ApplicabilityReport as ApplicabilityReport,
    Linear as Linear,
    fit_head as fit_head,
    fit_linear as fit_linear,
    load_extra as load_extra,
    measure_applicability as measure_applicability,
)
