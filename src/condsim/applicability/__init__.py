"""Applicability: fits and measures what tells whether a condition applies to two sentences.

```python
from condsim.applicability import fit_head, measure_applicability
from condsim.tasks.applicability import load_applicability

rows = load_applicability("labelled.csv")
measure_applicability(model, rows).head.value  # AUROC by cross-validation
fit_head(model, rows).save("applicability.json")
```

Fitting needs the ``train`` extra (scikit-learn); the head that comes out needs numpy alone
(`condsim.scorers.applicability`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.applicability.fitting import (
        SAMPLE as SAMPLE,
        STRENGTH as STRENGTH,
        Linear as Linear,
        fit_head as fit_head,
        fit_linear as fit_linear,
        load_extra as load_extra,
    )
    from condsim.applicability.measuring import (
        ApplicabilityReport as ApplicabilityReport,
        measure_applicability as measure_applicability,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "fitting": "Linear SAMPLE STRENGTH fit_head fit_linear load_extra",
        "measuring": "ApplicabilityReport measure_applicability",
    },
    extra="train",
)
