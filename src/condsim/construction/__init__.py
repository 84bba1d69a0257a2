"""Building your own conditional-similarity data set, the way C-STS was built.

Each step has rows on disk before and after:

1. ``candidates``: items with captions to near items, every pair of their captions, and those that
   are neither too alike nor too far apart (C-STS §2.2.1, A.2, Table 6).
2. ``annotation``: qualification, conditions and verification in Label Studio (§2.2.2).
3. ``dataset``: ratings to a data set that condsim trains on.

``weak`` makes labels without people. Needs ``pip install 'condsim[build]'``.
"""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="build")
