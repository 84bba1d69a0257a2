"""Collections: index, search, clusters and duplicates.

The names are imported when they are asked for: a search needs no scikit-learn, which loads slowly.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from condsim.errors import MissingExtraError, lazy_names

if TYPE_CHECKING:
    from condsim.search.clustering import cluster, cross_table
    from condsim.search.dedupe import find_duplicates
    from condsim.search.index import Index
    from condsim.search.match import find_matches
    from condsim.search.verdicts import find_verdicts

__all__ = ["Index", "cluster", "cross_table", "find_duplicates", "find_matches", "find_verdicts"]

for _library in ("faiss", "lancedb", "pyarrow", "scipy", "sklearn", "threadpoolctl"):
    if find_spec(_library) is None:
        raise MissingExtraError.of(_library, extra="search")

_PLACES = {
    "Index": "condsim.search.index.Index",
    "cluster": "condsim.search.clustering.cluster",
    "cross_table": "condsim.search.clustering.cross_table",
    "find_duplicates": "condsim.search.dedupe.find_duplicates",
    "find_matches": "condsim.search.match.find_matches",
    "find_verdicts": "condsim.search.verdicts.find_verdicts",
}

__getattr__ = lazy_names(__name__, _PLACES)
