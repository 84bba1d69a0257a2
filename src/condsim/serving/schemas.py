"""Schemas of requests and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from condsim.model.base import COLLECTION_SHARE, SAMPLES, Scale
from condsim.model.explanation import ExplainedText
from condsim.types import KeepRule

MAX_GROUPS = 100
"""Maximum `k` of a clustering."""


class TextDocument(BaseModel):
    """A text as an object, as Cohere and Jina have it."""

    text: str


def _wrap_text(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _document_texts(value: object) -> object:
    """Take the text out of documents such as ``{"text": "…"}``."""
    if not isinstance(value, list):
        return value
    return [
        document["text"] if isinstance(document, dict) and set(document) == {"text"} else document
        for document in value
    ]


def _one_or_each(value: object) -> object:
    """Accept what a union of both does, with one message instead of two."""
    texts = value if isinstance(value, list) else [value]
    if value is not None and not all(isinstance(text, str) for text in texts):
        raise ValueError("must be a string, or a list of strings")
    return value


def _number_of_groups(value: object) -> object:
    is_number = isinstance(value, int) and not isinstance(value, bool) and 2 <= value <= MAX_GROUPS
    if value not in (None, "auto") and not is_number:
        raise ValueError(f"must be 'auto' or a whole number from 2 to {MAX_GROUPS}")
    return value


Strings = Annotated[list[str], Field(min_length=1)]
Texts = Annotated[Strings, BeforeValidator(_wrap_text, json_schema_input_type=str | Strings)]
"""One text or several."""
Documents = Annotated[
    Strings,
    BeforeValidator(
        _document_texts,
        json_schema_input_type=Annotated[list[str | TextDocument], Field(min_length=1)],
    ),
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
Share = Annotated[
    float,
    Field(
        ge=0, le=1, description="Share of the similarity without the condition in that under it."
    ),
]
OneOrEach = Annotated[
    str | list[str] | None,
    BeforeValidator(_one_or_each),
    Field(description="One condition for all texts, or a list with one for each."),
]
Conditions = Annotated[
    Texts | None,
    Field(
        validation_alias=AliasChoices("condition", "conditions"),
        examples=[["the sport", "the number of people"]],
    ),
]
"""One condition or several, each for all rows."""
Ignored = Annotated[object, Field(description="Accepted from existing clients; has no effect.")]
Dimensions = Annotated[int | None, Field(description="The model's dimension, if given.")]

# Nothing is billed, so nothing is counted.
_USAGE = {"prompt_tokens": 0, "total_tokens": 0}
_COHERE_META: dict[str, Any] = {"api_version": {"version": "2"}}
_QUERY = Field(examples=["The staff were rude."])
_TEXTS = Field(examples=[["The staff were friendly.", "The receptionist was unfriendly."]])


class RequestBody(BaseModel):
    """A request; an unknown key is an error, since a misspelled one would change the result."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    model: str | None = Field(None, description="The name in `/v1/models`, or none.")


class ClientRequest(RequestBody):
    """Keys that clients of other servers send; long texts are read in chunks, without a prompt."""

    input_type: Ignored = None
    max_tokens: Ignored = None
    normalize: Ignored = None
    normalized: Ignored = None
    priority: Ignored = None
    prompt_name: Ignored = None
    request_id: Ignored = None
    task: Ignored = None
    truncate: Ignored = None
    truncate_prompt_tokens: Ignored = None
    truncation: Ignored = None
    truncation_direction: Ignored = None
    truncation_side: Ignored = None
    user: Ignored = None


class EmbeddingsRequest(ClientRequest):
    """OpenAI's form, and `condition`."""

    input: Annotated[Texts, _TEXTS]
    condition: OneOrEach = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Dimensions = None


class TeiEmbedRequest(ClientRequest):
    """The form of text-embeddings-inference, and `condition`; vectors have length 1 always."""

    inputs: Annotated[Texts, _TEXTS]
    condition: OneOrEach = None
    dimensions: Dimensions = None


class CohereEmbedRequest(ClientRequest):
    """The form of version 2 of Cohere, for texts, and `condition`."""

    texts: Annotated[Strings, _TEXTS]
    condition: OneOrEach = None
    embedding_types: list[Literal["float", "base64"]] = Field(["float"], min_length=1)
    output_dimension: Dimensions = None


class SimilarityTexts(BaseModel):
    """A sentence, and those to compare it with."""

    model_config = RequestBody.model_config

    source_sentence: Annotated[str, _QUERY]
    sentences: Annotated[Strings, _TEXTS]


class SimilarityRequest(ClientRequest):
    """The form of text-embeddings-inference, and `condition`."""

    inputs: SimilarityTexts
    condition: Condition = None
    parameters: Ignored = None


class RerankRequest(ClientRequest):
    """The form of Cohere, Jina and vLLM with `documents`, or the form of TEI with `texts`."""

    query: Annotated[str, _QUERY]
    documents: Annotated[Documents | None, _TEXTS] = None
    texts: Annotated[Strings | None, _TEXTS] = None
    condition: Condition = None
    top_n: int | None = Field(
        None, ge=0, le=10**6, description="Return only the best ones; all if 0 or none."
    )
    raw_scores: bool = Field(False, description="The scores on the raw scale.")
    return_documents: bool | None = None
    return_text: bool | None = None
    max_tokens_per_doc: Ignored = None
    max_chunks_per_doc: Ignored = None

    @model_validator(mode="after")
    def _check_form(self) -> Self:
        if (self.documents is None) == (self.texts is None):
            raise ValueError("A request must have either 'documents' or 'texts'.")
        return self


class ApplicabilityRequest(RequestBody):
    """Every pair under every condition."""

    pairs: Pairs
    conditions: Conditions = None


class ScoreRequest(RequestBody):
    """Every pair under every condition; without conditions, each pair as a whole."""

    pairs: Pairs
    conditions: Conditions = None
    scale: Scale = "unit"
    overall: Share = 0.0
    applicability: bool | None = Field(
        None,
        description="Whether to add how likely each condition applies; if none, to requests of up "
        "to 64 rows (`--batch-rows`). It takes about three times the work.",
    )


class ClusterRequest(RequestBody):
    """Texts to group under one condition, into `k` groups or as many as the data suggest."""

    texts: Annotated[Strings, _TEXTS]
    condition: Condition = None
    k: Annotated[
        int | Literal["auto"] | None,
        BeforeValidator(
            _number_of_groups,
            json_schema_input_type=Literal["auto"]
            | Annotated[int, Field(ge=2, le=MAX_GROUPS)]
            | None,
        ),
        Field(description="Number of groups; `auto` takes the one with the highest silhouette."),
    ] = None
    min_size: int | None = Field(None, ge=2, description="Minimum texts of a group, without `k`.")
    overall: Share = COLLECTION_SHARE


class DedupeRequest(RequestBody):
    """Texts, and the conditions that must all hold between duplicates."""

    texts: Annotated[Strings, _TEXTS]
    conditions: Conditions = None
    at_least: float | list[float] | None = Field(
        None, description="Score of duplicates, for all conditions or for each.", examples=[0.9]
    )
    to: int | None = Field(None, ge=1, description="How many texts to keep, without `at_least`.")
    overall: Share = COLLECTION_SHARE
    and_overall: float | None = Field(
        None, description="Score without any condition that duplicates must reach as well."
    )
    chain: bool = Field(False, description="A duplicate of a duplicate is in the group as well.")
    keep: KeepRule = "first"


class MatchRequest(RequestBody):
    """Two lists of texts, and the conditions that must all hold between matches."""

    texts1: Annotated[Strings, _TEXTS]
    texts2: Annotated[Strings, _TEXTS]
    conditions: Conditions = None
    at_least: float | None = Field(None, ge=0, le=1, description="Lowest score of a match.")
    one_to_many: bool = Field(False, description="A text of `texts2` may match several.")
    overall: Share = COLLECTION_SHARE


class ExplainRequest(RequestBody):
    """A pair, and a condition unless to explain its texts as a whole."""

    sentence1: Annotated[str, Field(examples=["A man throws a ball."])]
    sentence2: Annotated[str, Field(examples=["A girl kicks a ball."])]
    condition: Annotated[Condition, Field(examples=["the sport"])] = None
    scale: Scale = "unit"
    samples: int = Field(
        SAMPLES, ge=1, le=1000, description="Maximum subsets of the words of each text."
    )


class SearchRequest(RequestBody):
    """A query under conditions, by default the only one that the index is prepared for."""

    query: Annotated[str, Field(examples=["I waited two months for my toaster."])]
    conditions: Conditions = None
    weights: list[float] | None = Field(
        None, description="One for each condition, above 0; equal if none.", examples=[[0.7, 0.3]]
    )
    where: str | None = Field(
        None, description="A filter in SQL on the columns.", examples=["year > 2020"]
    )
    top: int = Field(10, ge=1, le=1000, description="Maximum number of results.")
    at_least: float | None = Field(None, ge=0, le=1, description="Lowest score.")
    rescore: int = Field(200, ge=1, le=10**4, description="Texts to score under the conditions.")
    overall: Share = COLLECTION_SHARE


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


class CohereEmbedAnswer(BaseModel):
    """Embeddings in the order of the texts, by their type."""

    id: str
    response_type: Literal["embeddings_by_type"] = "embeddings_by_type"
    embeddings: dict[str, list[list[float] | str]]
    texts: list[str]
    meta: dict[str, Any] = _COHERE_META


class RankedDocument(BaseModel):
    """A document's index in the request, and its score from 0 to 1."""

    index: int
    relevance_score: float
    document: TextDocument | None = None


class RerankAnswer(BaseModel):
    """Documents, the best first."""

    id: str
    model: str
    results: list[RankedDocument]
    meta: dict[str, Any] = _COHERE_META
    usage: dict[str, int] = _USAGE


class RankedText(BaseModel):
    """A text's index in the request, and its score."""

    index: int
    score: float
    text: str | None = None


UnreadTexts = Annotated[
    list[int] | None, Field(description="Indices of texts that the model cannot read.")
]


class ScoreAnswer(BaseModel):
    """One list for each pair, with one score for each condition."""

    model: str
    scale: Scale
    scores: list[list[float]]
    applicability: list[list[float]] | None = Field(
        None, description="Probability that each condition applies to both texts."
    )
    remarks: list[list[str]] | None = Field(
        None,
        description="Which texts seem not to mention the condition, so that the score means "
        "little; empty where it seems to apply.",
    )
    unread: list[int] | None = Field(
        None,
        description="Indices of pairs with a text that the model cannot read, or whose texts "
        "differ in characters that it cannot read; their scores mean little.",
    )


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
    unread: UnreadTexts = None


class DuplicateText(BaseModel):
    """Indices of a text and of the kept text in the request, and their score."""

    index: int
    duplicate_of: int
    score: float


class DedupeAnswer(BaseModel):
    """Indices of the texts to keep, and the other texts."""

    model: str
    kept: list[int]
    duplicates: list[DuplicateText]
    unread: UnreadTexts = None


class MatchedTexts(BaseModel):
    """Indices of two texts, their score, and its gap to the next best text of `texts2`."""

    index1: int
    index2: int
    score: float
    gap: float | None = None


class MatchAnswer(BaseModel):
    """Matches, the highest score first, and the indices of all other texts."""

    model: str
    matches: list[MatchedTexts]
    unmatched1: list[int]
    unmatched2: list[int]


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


class ModelCard(BaseModel):
    """The model, its learned criteria, and the columns and prepared conditions of the index."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "condsim"
    index: dict[str, list[str]] | None = None
    criteria: list[str] | None = None


class ServerInfo(BaseModel):
    """The part of text-embeddings-inference's answer that has a meaning here."""

    model_id: str
    version: str
    max_client_batch_size: int
    max_batch_requests: int
    auto_truncate: bool = False


class ModelList(BaseModel):
    """The one model of the server."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


class Status(BaseModel):
    """State of the server."""

    status: Literal["ok"] = "ok"
    model: str
    version: str
