"""Collections: index, search, clusters and duplicates."""

from condsim.errors import requires_extra

with requires_extra("search"):
    from condsim.search.cluster import cluster, cross_table
    from condsim.search.dedupe import find_duplicates
    from condsim.search.index import Index
    from condsim.search.match import find_matches

__all__ = ["Index", "cluster", "cross_table", "find_duplicates", "find_matches"]
