"""Schemas of requests and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from condsim.model.base import SAMPLES, Scale
from condsim.model.explanation import ExplainedText


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _document_texts(value: object) -> object:
    """Take the text out of documents such as ``{"text": "…"}``."""
    if not isinstance(value, list):
        return value
    return [
        document["text"] if isinstance(document, dict) and set(document) == {"text"} else document
        for document in value
    ]


_STRING: dict[str, Any] = {"type": "string"}
_DOCUMENT = {"type": "object", "properties": {"text": _STRING}, "required": ["text"]}


def _array(*items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": {"anyOf": [*items]}, "minItems": 1}


Strings = Annotated[list[str], Field(min_length=1)]
Texts = Annotated[
    Strings, BeforeValidator(_as_list), WithJsonSchema({"anyOf": [_STRING, _array(_STRING)]})
]
"""One text or several."""
Documents = Annotated[
    Strings, BeforeValidator(_document_texts), WithJsonSchema(_array(_STRING, _DOCUMENT))
]
"""Texts, each alone or as the ``text`` of an object."""
Pairs = Annotated[
    list[Annotated[list[str], Field(min_length=2, max_length=2)]],
    Field(min_length=1, examples=[[["A man throws a ball.", "A girl kicks a ball."]]]),
]
Condition = Annotated[
    str | None,
    Field(
        description="Respect in which to compare; none for the texts as a whole.",
        examples=["the attitude of the staff"],
    ),
]
Ignored = Annotated[object, Field(description="Accepted from existing clients; has no effect.")]

# Nothing is billed, so nothing is counted.
_USAGE = {"prompt_tokens": 0, "total_tokens": 0}
_QUERY = Field(examples=["The staff were rude."])
_TEXTS = Field(examples=[["The staff were friendly.", "The receptionist was unfriendly."]])
_CONDITIONS = Field(examples=[["the sport", "the number of people"]])


class RequestBody(BaseModel):
    """A request; an unknown key is an error, since a misspelt one would change the result."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class ModelRequest(RequestBody):
    """A request that may name the model."""

    model: str | None = Field(None, description="The name in `/v1/models`, or none.")


class EmbeddingsRequest(ModelRequest):
    """OpenAI's form, and `condition`: one for all texts, or one for each."""

    input: Annotated[Texts, _TEXTS]
    condition: Texts | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, description="The model's own, if given.")
    user: Ignored = None


class RerankRequest(ModelRequest):
    """The form of Cohere and Jina, and `condition`."""

    query: Annotated[str, _QUERY]
    documents: Annotated[Documents, _TEXTS]
    condition: Condition = None
    top_n: int | None = Field(None, ge=1, le=10**6, description="Return only the best ones.")
    return_documents: bool | None = None
    max_tokens_per_doc: Ignored = None
    max_chunks_per_doc: Ignored = None
    priority: Ignored = None
    truncation: Ignored = None


class TeiRerankRequest(RequestBody):
    """The form of text-embeddings-inference, and `condition`."""

    query: Annotated[str, _QUERY]
    texts: Annotated[Strings, _TEXTS]
    condition: Condition = None
    raw_scores: bool = Field(False, description="The scores on the raw scale.")
    return_text: bool = False
    truncate: Ignored = None
    truncation_direction: Ignored = None


class ApplicabilityRequest(ModelRequest):
    """Every pair under every condition."""

    pairs: Pairs
    conditions: Annotated[Strings, _CONDITIONS]


class ScoreRequest(ModelRequest):
    """Every pair under every condition; without conditions, each pair as a whole."""

    pairs: Pairs
    conditions: Annotated[Strings | None, _CONDITIONS] = None
    scale: Scale = "unit"


class ClusterRequest(ModelRequest):
    """Texts to group under one condition, into `k` groups or as many as the data suggest."""

    texts: Annotated[Strings, _TEXTS]
    condition: Condition = None
    k: int | None = Field(None, ge=2, le=100)
    min_size: int | None = Field(None, ge=2, description="Minimum texts of a group, without `k`.")


class ExplainRequest(ModelRequest):
    """A pair, and a condition unless to explain its texts as a whole."""

    sentence1: Annotated[str, Field(examples=["A man throws a ball."])]
    sentence2: Annotated[str, Field(examples=["A girl kicks a ball."])]
    condition: Annotated[Condition, Field(examples=["the sport"])] = None
    scale: Scale = "unit"
    samples: int = Field(
        SAMPLES, ge=1, le=1000, description="Maximum subsets of the words of each text."
    )


class SearchRequest(ModelRequest):
    """A query under conditions, by default the only one that the index is prepared for."""

    query: Annotated[str, Field(examples=["I waited two months for my toaster."])]
    conditions: Annotated[Strings | None, Field(examples=[["the complaint", "the product"]])] = None
    weights: list[float] | None = Field(
        None, description="One for each condition, above 0; equal if none.", examples=[[0.7, 0.3]]
    )
    where: str | None = Field(
        None, description="A filter in SQL on the columns.", examples=["year > 2020"]
    )
    top: int = Field(10, ge=1, le=1000, description="Maximum number of results.")
    at_least: float | None = Field(None, ge=0, le=1, description="Lowest score.")
    rescore: int = Field(200, ge=1, le=10**4, description="Texts to score under the conditions.")


class Embedding(BaseModel):
    """One embedding, of length 1."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str = Field(description="Numbers, or float32 bytes in base64.")


class EmbeddingsAnswer(BaseModel):
    """Embeddings in the order of the input."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: dict[str, int] = _USAGE


class RankedDocument(BaseModel):
    """A document's index in the request, and its score from 0 to 1."""

    index: int
    relevance_score: float
    document: dict[str, str] | None = None


class RerankAnswer(BaseModel):
    """Documents, the best first."""

    id: str
    model: str
    results: list[RankedDocument]
    meta: dict[str, Any] = {"api_version": {"version": "2"}}
    usage: dict[str, int] = _USAGE


class RankedText(BaseModel):
    """A text's index in the request, and its score."""

    index: int
    score: float
    text: str | None = None


class ScoreAnswer(BaseModel):
    """One list for each pair, with one score for each condition."""

    model: str
    scale: Scale
    scores: list[list[float]]


class ApplicabilityAnswer(BaseModel):
    """Probability that each condition applies to both texts of each pair, as for scores."""

    model: str
    probabilities: list[list[float]]


class ClusterAnswer(BaseModel):
    """The group of each text, -1 for none; number, size, words and nearest text of each group."""

    model: str
    method: str
    labels: list[int]
    clusters: list[dict[str, Any]]
    silhouette: float | None = None


class ExplainAnswer(BaseModel):
    """`remainder` and all contributions add up to `score`.

    `pairs` has a row for each word of the first text: its effect with each word of the second, on
    the raw scale.
    """

    model: str
    condition: str | None = None
    scale: Scale
    score: float
    remainder: float
    texts: list[ExplainedText]
    pairs: list[list[float]] | None = None


class SearchResult(BaseModel):
    """A text of the index, its score, its score by condition, and the columns of its row."""

    key: str
    text: str
    score: float
    scores: dict[str, float]
    columns: dict[str, Any]


class SearchAnswer(BaseModel):
    """Texts, the best first."""

    model: str
    results: list[SearchResult]


class Status(BaseModel):
    """State of the server."""

    status: Literal["ok"] = "ok"
    model: str
    version: str
