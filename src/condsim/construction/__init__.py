"""Building a conditional-similarity data set of one's own, the way C-STS was built.

One step a file, each with rows on disk before and after (`condsim.construction.rows`):

1. ``images``, ``text_vectors``: items with captions to one embedding an item (C-STS §2.2.1).
2. ``candidates``: near items, and every pair of their captions.
3. ``filters``: pairs that are neither too alike nor too far apart (C-STS A.2, Table 6).
4. ``annotation``: qualification, conditions and verification in Label Studio (§2.2.2).
5. ``agreement``, ``splits``, ``dataset``: ratings to a data set that condsim trains on.

Needs ``pip install 'condsim[build]'``.
"""

from __future__ import annotations

__all__: list[str] = []
