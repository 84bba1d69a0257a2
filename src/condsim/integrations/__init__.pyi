from .bertopic import BertopicBackend as BertopicBackend
from .duckdb import register_duckdb as register_duckdb
from .haystack import (
    HaystackDocumentEmbedder as HaystackDocumentEmbedder,
    HaystackRanker as HaystackRanker,
    HaystackTextEmbedder as HaystackTextEmbedder,
)
from .langchain import (
    LangChainEmbeddings as LangChainEmbeddings,
    LangChainReranker as LangChainReranker,
)
from .llama_index import (
    LlamaIndexEmbedding as LlamaIndexEmbedding,
    LlamaIndexReranker as LlamaIndexReranker,
)
from .models import Model as Model
from .pandas import register_pandas as register_pandas
from .polars import register_polars as register_polars
