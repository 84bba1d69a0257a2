"""The routes of other servers: OpenAI, Cohere, Jina and text-embeddings-inference (TEI)."""

from __future__ import annotations

import base64
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
from fastapi import APIRouter

from condsim.errors import InputError
from condsim.model.base import Scale, check_rows
from condsim.serving import schemas
from condsim.serving.service import HeaderCondition, Service, SharedService
from condsim.types import FloatArray

router = APIRouter()
_post = partial(router.post, response_model_exclude_none=True)


@_post("/v1/embeddings")
async def embeddings(
    body: schemas.EmbeddingsRequest, service: SharedService, header: HeaderCondition
) -> schemas.EmbeddingsAnswer:
    """Embed texts, each under a condition."""
    service.check_model(body.model)
    _check_dimensions("dimensions", body.dimensions, service)
    condition = header if body.condition is None else body.condition
    vectors = await service.embed(condition, input=body.input)
    # The numbers are not validated, for speed.
    data = [
        schemas.Embedding.model_construct(index=index, embedding=item)
        for index, item in enumerate(_encoded(vectors, body.encoding_format))
    ]
    return schemas.EmbeddingsAnswer(data=data, model=service.name)


@_post("/")
@_post("/embed")
async def tei_embed(
    body: schemas.TeiEmbedRequest, service: SharedService, header: HeaderCondition
) -> list[list[float]]:
    """Embed texts in the form of text-embeddings-inference."""
    service.check_model(body.model)
    _check_dimensions("dimensions", body.dimensions, service)
    condition = header if body.condition is None else body.condition
    vectors = await service.embed(condition, inputs=body.inputs)
    return _encoded(vectors, "float")


@_post("/v2/embed")
async def cohere_embed(
    body: schemas.CohereEmbedRequest, service: SharedService, header: HeaderCondition
) -> schemas.CohereEmbedAnswer:
    """Embed texts in the form of Cohere."""
    service.check_model(body.model)
    _check_dimensions("output_dimension", body.output_dimension, service)
    condition = header if body.condition is None else body.condition
    vectors = await service.embed(condition, texts=body.texts)
    return schemas.CohereEmbedAnswer(
        id=str(uuid4()),
        embeddings={kind: _encoded(vectors, kind) for kind in body.embedding_types},
        texts=body.texts,
    )


# Version 2 of Cohere's client asks at the second path, and most other servers are at the third.
@_post("/v1/rerank")
@_post("/v2/rerank")
@_post("/rerank")
async def rerank(
    body: schemas.RerankRequest, service: SharedService, header: HeaderCondition
) -> schemas.RerankAnswer | list[schemas.RankedText]:
    """Sort texts by their similarity to a query, under a condition.

    The answer to `documents` has the form of Cohere and Jina, that to `texts` the form of
    text-embeddings-inference: a list.
    """
    service.check_model(body.model)
    key = "texts" if body.documents is None else "documents"
    texts = body.documents or body.texts or []
    condition = header if body.condition is None else body.condition
    scale: Scale = "raw" if body.raw_scores else "unit"
    scores = await _score_texts(body.query, condition, service, scale=scale, **{key: texts})
    best = np.argsort(-scores, kind="stable")[: body.top_n or None].tolist()
    rounded = _rounded(scores)
    show = bool(body.return_documents or body.return_text)
    if key == "texts":
        return [
            schemas.RankedText(
                index=index, score=rounded[index], text=texts[index] if show else None
            )
            for index in best
        ]
    results = [
        schemas.RankedDocument(
            index=index,
            relevance_score=rounded[index],
            document=schemas.TextDocument(text=texts[index]) if show else None,
        )
        for index in best
    ]
    return schemas.RerankAnswer(id=str(uuid4()), model=service.name, results=results)


@_post("/similarity")
async def tei_similarity(
    body: schemas.SimilarityRequest, service: SharedService, header: HeaderCondition
) -> list[float]:
    """Compare a sentence with others in the form of text-embeddings-inference."""
    service.check_model(body.model)
    condition = header if body.condition is None else body.condition
    sentence, sentences = body.inputs.source_sentence, body.inputs.sentences
    return _rounded(await _score_texts(sentence, condition, service, sentences=sentences))


async def _score_texts(
    query: str,
    condition: str | None,
    service: Service,
    *,
    scale: Scale = "unit",
    **texts: list[str],
) -> FloatArray:
    """Score a query with each text, (n,); the name of the texts is that in messages."""
    ((key, column),) = texts.items()
    service.check_size(len(column), key, [query, condition or ""], column)
    rows = check_rows(condition, query=query, **texts)
    conditions = () if rows.conditions is None else (rows.conditions,)
    return await service.score(*rows.sentences, *conditions, scale=scale)


def _check_dimensions(key: str, dimensions: int | None, service: Service) -> None:
    if dimensions not in (None, service.embedder.dimension):
        raise InputError(
            f"The {key!r} must be those of the model, {service.embedder.dimension}; got "
            f"{dimensions}."
        )


def _encoded(vectors: FloatArray, kind: str) -> list[Any]:
    """Convert vectors to numbers, or to the bytes of each in base64."""
    if kind == "base64":
        return [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in vectors]
    return [*np.round(vectors.astype(np.float64), 8).tolist()]


def _rounded(scores: FloatArray) -> list[float]:
    rounded: list[float] = np.round(scores.astype(np.float64), 6).tolist()
    return rounded
