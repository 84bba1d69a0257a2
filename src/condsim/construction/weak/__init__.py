"""Weak labels from raw text: functions that read an attribute and compare two values of it.

Programmatic labelling after Ratner et al. (2016), "Data programming: creating large training sets,
quickly"; conditions and scale are those of C-STS. `docs/weak-labels.md` shows a function of your
own.
"""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="build")
