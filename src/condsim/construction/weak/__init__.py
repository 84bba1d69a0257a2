"""Weak labels from raw text: functions that read an attribute and compare two values of it.

```
sentence ──► LabellingFunction.read ──► value ──┐
                                                ├──► compare ──► label, 1 to 5
sentence ──► LabellingFunction.read ──► value ──┘
```

Programmatic labelling after Ratner et al. (2016), "Data programming: creating large training sets,
quickly"; conditions and scale are those of C-STS. `docs/weak-labels.md` shows a function of one's
own.
"""

from __future__ import annotations

from condsim.construction.weak import doings, nouns, people, places
from condsim.construction.weak.answers import answers
from condsim.construction.weak.compare import graded, yes_or_no
from condsim.construction.weak.registry import (
    ABSENT,
    REGISTRY,
    LabellingFunction,
    Registry,
    labelling_function,
)
from condsim.construction.weak.sentence import Sentence

__all__ = [
    "ABSENT",
    "REGISTRY",
    "LabellingFunction",
    "Registry",
    "Sentence",
    "answers",
    "graded",
    "labelling_function",
    "yes_or_no",
]

_BUILT_IN = (people, doings, places, nouns)  # importing them registered their functions
