"""What requests and answers look like."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, Field, RootModel, WithJsonSchema

from condsim.config import Settings
from condsim.model.base import SAMPLES, Scale
from condsim.model.explanation import ExplainedText


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _texts_of(value: object) -> object:
    """Takes the text out of documents such as ``{"text": "…"}``."""
    if not isinstance(value, list):
        return value
    return [one["text"] if isinstance(one, dict) and set(one) == {"text"} else one for one in value]


_STRING: dict[str, Any] = {"type": "string"}
_DOCUMENT = {"type": "object", "properties": {"text": _STRING}, "required": ["text"]}


def _array(*items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": {"anyOf": [*items]}, "minItems": 1}


Strings = Annotated[list[str], Field(min_length=1)]
Texts = Annotated[
    Strings, BeforeValidator(_listed), WithJsonSchema({"anyOf": [_STRING, _array(_STRING)]})
]
"""One text or several."""
Documents = Annotated[
    Strings, BeforeValidator(_texts_of), WithJsonSchema(_array(_STRING, _DOCUMENT))
]
"""Texts, each alone or as the ``text`` of an object."""
Pairs = Annotated[
    list[Annotated[list[str], Field(min_length=2, max_length=2)]],
    Field(min_length=1, examples=[[["A man throws a ball.", "A girl kicks a ball."]]]),
]
Condition = Annotated[
    str | None,
    Field(
        description="In which respect; none: the texts as a whole.",
        examples=["the attitude of the staff"],
    ),
]
Ignored = Annotated[object, Field(description="Taken from existing clients; has no effect.")]

_USAGE = {"prompt_tokens": 0, "total_tokens": 0}  # nothing is billed, so nothing is counted
_QUERY = Field(examples=["The staff were rude."])
_TEXTS = Field(examples=[["The staff were friendly.", "The receptionist was unfriendly."]])
_CONDITIONS = Field(examples=[["the sport", "the number of people"]])


class RequestBody(Settings):
    """A request; an unknown key is an error, for a misspelt one would change the result."""

    what: ClassVar[str] = "request"


class ModelRequest(RequestBody):
    """A request that may name the model."""

    model: str | None = Field(None, description="The name that `/v1/models` gives, or none.")


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
    top_n: int | None = Field(None, ge=1, le=10**6, description="Answer with the best ones only.")
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
    """Texts to group under one condition; `k` groups, or as many as are found."""

    texts: Annotated[Strings, _TEXTS]
    condition: Condition = None
    k: int | None = Field(None, ge=2, le=100)
    min_size: int | None = Field(None, ge=2, description="Fewest texts of a group that is found.")


class ExplainRequest(ModelRequest):
    """A pair, and a condition unless its texts are to be explained as a whole."""

    sentence1: Annotated[str, Field(examples=["A man throws a ball."])]
    sentence2: Annotated[str, Field(examples=["A girl kicks a ball."])]
    condition: Annotated[Condition, Field(examples=["the sport"])] = None
    scale: Scale = "unit"
    samples: int = Field(
        SAMPLES, ge=1, le=1000, description="Most subsets of the words of each text to score."
    )


class SearchRequest(ModelRequest):
    """A query under conditions; without one, under the only one that the index is prepared for."""

    query: Annotated[str, Field(examples=["I waited two months for my toaster."])]
    conditions: Annotated[Strings | None, Field(examples=[["the complaint", "the product"]])] = None
    weights: list[float] | None = Field(
        None, description="One for each condition, above 0; equal if none.", examples=[[0.7, 0.3]]
    )
    where: str | None = Field(
        None, description="A filter in SQL on the columns.", examples=["year > 2020"]
    )
    top: int = Field(10, ge=1, le=1000, description="Most texts to find.")
    at_least: float | None = Field(None, ge=0, le=1, description="Lowest score.")
    rescore: int = Field(
        200, ge=1, le=10**4, description="Texts that are scored under the conditions."
    )


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


class Ranked(BaseModel):
    """A document's place among those that were sent, and its score from 0 to 1."""

    index: int
    relevance_score: float
    document: dict[str, str] | None = None


class RerankAnswer(BaseModel):
    """Documents, the best first."""

    id: str
    model: str
    results: list[Ranked]
    meta: dict[str, Any] = {"api_version": {"version": "2"}}
    usage: dict[str, int] = _USAGE


class TeiRanked(BaseModel):
    """A text's place and score."""

    index: int
    score: float
    text: str | None = None


class TeiRerankAnswer(RootModel[list[TeiRanked]]):
    """Texts, the best first."""


class ScoreAnswer(BaseModel):
    """One list for each pair, with one score for each condition."""

    model: str
    scale: Scale
    scores: list[list[float]]


class ApplicabilityAnswer(BaseModel):
    """How likely each condition applies to both texts of each pair, as for scores."""

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

    `pairs` has a row for each word of the first text: what it does with each of the second, on
    the raw scale.
    """

    model: str
    condition: str | None = None
    scale: Scale
    score: float
    remainder: float
    texts: list[ExplainedText]
    pairs: list[list[float]] | None = None


class Found(BaseModel):
    """A text of the index, its score, that under each condition, and the columns of its row."""

    key: str
    text: str
    score: float
    scores: dict[str, float]
    columns: dict[str, Any]


class SearchAnswer(BaseModel):
    """Texts, the best first."""

    model: str
    results: list[Found]


class Status(BaseModel):
    """Whether the server works."""

    status: Literal["ok"] = "ok"
    model: str
    version: str
