"""The one reader of rows: CSV, TSV, JSONL and Parquet, packed or not."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
