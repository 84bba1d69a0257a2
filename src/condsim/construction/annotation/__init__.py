"""Annotation of a new data set in three stages, as C-STS was made (C-STS §2.2.2, Appendix C).

```
               push                     pull                        what comes of it
qualification  a test with known   ──►  answers, scored        ──►  the pool of annotators
conditions     sentence pairs      ──►  C-High and C-Low       ──►  conditions.parquet
verification   pairs + conditions  ──►  1 to 5, or no meaning  ──►  ratings.parquet
```

- ``stages``: what annotators see, the same in Label Studio (``server``) and in a form for
  Mechanical Turk (``mturk``), and hints at their conditions.
- ``store``: one SQLite file beside the data set: what was handed out, what came back.
- ``exchange``, ``outcome``: the steps; ``prefilling``: help of models.

Needs ``pip install 'condsim[build]'``.
"""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="build")
