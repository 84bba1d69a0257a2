from .clustering import (
    Cluster as Cluster,
    Clusters as Clusters,
    cluster as cluster,
    cross_table as cross_table,
)
from .dedupe import Duplicates as Duplicates, Keep as Keep, find_duplicates as find_duplicates
from .picture import plot_clusters as plot_clusters
from .threshold import Threshold as Threshold, find_threshold as find_threshold
