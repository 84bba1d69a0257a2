from .clustering import (
    Cluster as Cluster,
    Clusters as Clusters,
    cluster as cluster,
    cross_table as cross_table,
)
from .picture import plot_clusters as plot_clusters
