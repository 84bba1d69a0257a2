"""Evaluation: measures scorers on tasks, with intervals, baselines and provenance.

```python
from condsim.evaluation import evaluate, to_markdown

report = evaluate(scorer, task, baselines=["word-overlap"])
report.model.metrics["spearman"].value
print(to_markdown(report))
```
"""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="train")
