from .clustering import (
    Cluster as Cluster,
    Clusters as Clusters,
    cluster as cluster,
    cross_table as cross_table,
)
from .dedupe import Duplicates as Duplicates, Keep as Keep, find_duplicates as find_duplicates
from .first_stage import FirstStage as FirstStage
from .index import Index as Index
from .picture import plot_clusters as plot_clusters
from .ray import RayEncoding as RayEncoding
from .searching import Conditions as Conditions, Hit as Hit
from .store import Added as Added
from .threshold import Threshold as Threshold, find_threshold as find_threshold
