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

from condsim.applicability.fitting import fit_head
from condsim.applicability.measuring import ApplicabilityReport, measure_applicability

__all__ = ["ApplicabilityReport", "fit_head", "measure_applicability"]
