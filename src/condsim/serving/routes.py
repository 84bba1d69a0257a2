"""The routes that ask the model."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import numpy as np
from fastapi import APIRouter, Depends

from condsim.errors import InputError, ModelError
from condsim.model.base import check_rows
from condsim.serving import schemas
from condsim.serving.errors import RESPONSES, RequestError
from condsim.serving.service import Service, service_of
from condsim.types import FloatArray

if TYPE_CHECKING:
    from condsim.model.explanation import Explanation
    from condsim.search.cluster import Clusters
    from condsim.search.index import Index
    from condsim.search.query import Hit

# "default" keeps FastAPI from documenting its own form of errors.
router = APIRouter(responses={**RESPONSES, "default": RESPONSES[400]})
_post = partial(router.post, response_model_exclude_none=True)
SharedService = Annotated[Service, Depends(service_of)]


@_post("/v1/embeddings")
async def embeddings(
    body: schemas.EmbeddingsRequest, service: SharedService
) -> schemas.EmbeddingsAnswer:
    """Embed texts, each under a condition."""
    service.check_model(body.model)
    conditions = body.condition or []
    service.check_size(len(body.input), "texts", body.input, conditions)
    scorer = service.embedder
    if body.dimensions not in (None, scorer.dimension):
        raise InputError(
            f"The 'dimensions' must be those of the model, {scorer.dimension}; got "
            f"{body.dimensions}."
        )
    columns = [body.input]
    if conditions:
        columns.append(conditions * (len(body.input) if len(conditions) == 1 else 1))
    check_rows(columns[1] if conditions else None, input=body.input)
    vectors = await service.batcher.submit(scorer.encode, *columns)
    if body.encoding_format == "base64":
        encoded = [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in vectors]
    else:
        encoded = np.round(vectors.astype(np.float64), 8).tolist()
    # The numbers are not validated, for speed.
    data = [
        schemas.Embedding.model_construct(index=i, embedding=item) for i, item in enumerate(encoded)
    ]
    return schemas.EmbeddingsAnswer(data=data, model=service.name)


# Version 2 of Cohere's client asks at the second path.
@_post("/v2/rerank")
@_post("/v1/rerank")
async def rerank(body: schemas.RerankRequest, service: SharedService) -> schemas.RerankAnswer:
    """Sort documents by their similarity to a query, under a condition."""
    service.check_model(body.model)
    scores = await _score_documents(body.query, body.documents, body.condition, service)
    results = [
        schemas.RankedDocument(
            index=index,
            relevance_score=_rounded(scores[index]),
            document={"text": body.documents[index]} if body.return_documents else None,
        )
        for index in np.argsort(-scores, kind="stable")[: body.top_n].tolist()
    ]
    return schemas.RerankAnswer(id=str(uuid4()), model=service.name, results=results)


@_post("/rerank")
async def tei_rerank(
    body: schemas.TeiRerankRequest, service: SharedService
) -> list[schemas.RankedText]:
    """Sort texts in the form of text-embeddings-inference."""
    scores = await _score_documents(
        body.query, body.texts, body.condition, service, raw=body.raw_scores
    )
    return [
        schemas.RankedText(
            index=index,
            score=_rounded(scores[index]),
            text=body.texts[index] if body.return_text else None,
        )
        for index in np.argsort(-scores, kind="stable").tolist()
    ]


async def _score_documents(
    query: str, documents: list[str], condition: str | None, service: Service, *, raw: bool = False
) -> FloatArray:
    """Score a query with each document, (n,)."""
    service.check_size(len(documents), "documents", [query, condition or ""], documents)
    check_rows(condition, query=query, documents=documents)
    rows = len(documents)
    conditions = None if condition is None else [condition] * rows
    return await service.score(
        [query] * rows, documents, conditions, scale="raw" if raw else "unit"
    )


@_post("/v1/score")
async def score(body: schemas.ScoreRequest, service: SharedService) -> schemas.ScoreAnswer:
    """Score every pair under every condition."""
    service.check_model(body.model)
    columns = _crossed(body.pairs, body.conditions, service)
    first, second = columns[:2]
    conditions = None if body.conditions is None else columns[2]
    scores = await service.score(first, second, conditions, scale=body.scale)
    return schemas.ScoreAnswer(
        model=service.name, scale=body.scale, scores=_pair_rows(scores, body.pairs)
    )


@_post("/v1/applicability")
async def applicability(
    body: schemas.ApplicabilityRequest, service: SharedService
) -> schemas.ApplicabilityAnswer:
    """Estimate the probability that each condition applies to both texts of each pair."""
    service.check_model(body.model)
    scorer = service.embedder
    if scorer.head is None:
        raise InputError(
            f"{service.name} has no applicability head; serve a model that has one, such as the "
            "default."
        )
    columns = _crossed(body.pairs, body.conditions, service)
    probabilities = await service.batcher.submit(scorer.applicability, *columns)
    return schemas.ApplicabilityAnswer(
        model=service.name, probabilities=_pair_rows(probabilities, body.pairs)
    )


@_post("/v1/cluster")
async def cluster(body: schemas.ClusterRequest, service: SharedService) -> schemas.ClusterAnswer:
    """Group texts under a condition; needs `condsim[search]` on the server."""
    service.check_model(body.model)
    service.check_size(len(body.texts), "texts", body.texts, [body.condition or ""])
    check_rows(body.condition, texts=body.texts)
    columns = [body.texts]
    if body.condition is not None:
        columns.append([body.condition] * len(body.texts))
    vectors = await service.batcher.submit(service.embedder.encode, *columns)
    async with service.exclusive("cluster"):
        clusters = await asyncio.to_thread(_cluster, body, vectors)
    return schemas.ClusterAnswer(
        model=service.name,
        method=clusters.method,
        labels=clusters.labels.tolist(),
        clusters=[asdict(group) for group in clusters.clusters],
        silhouette=clusters.silhouette,
    )


def _cluster(body: schemas.ClusterRequest, vectors: FloatArray) -> Clusters:
    # Slow to import.
    from condsim.search.cluster import cluster

    return cluster(body.texts, body.condition, k=body.k, min_size=body.min_size, vectors=vectors)


@_post("/v1/explain")
async def explain(body: schemas.ExplainRequest, service: SharedService) -> schemas.ExplainAnswer:
    """Compute the contribution of each word of two texts to their score."""
    service.check_model(body.model)
    service.check_size(1, "pairs", [body.sentence1, body.sentence2, body.condition or ""])
    async with service.exclusive("explain"):
        explanation = await asyncio.to_thread(_explain, body, service)
    return schemas.ExplainAnswer.model_validate(explanation.to_dict() | {"model": service.name})


def _explain(body: schemas.ExplainRequest, service: Service) -> Explanation:
    # Slow to import.
    from condsim.rows.teach import function_answers

    return service.batched_scorer.explain(
        body.sentence1,
        body.sentence2,
        body.condition,
        scale=body.scale,
        samples=body.samples,
        read=function_answers,
    )


@_post("/v1/search")
async def search(body: schemas.SearchRequest, service: SharedService) -> schemas.SearchAnswer:
    """Find the texts of the server's index most similar to a query, under conditions."""
    service.check_model(body.model)
    if service.index is None:
        raise RequestError(404, "This server has no index; start it with --index DIR.")
    conditions, weights = body.conditions or [], body.weights
    rows = max(body.top, body.rescore) * max(1, len(conditions))
    service.check_size(
        rows, "rows, 'rescore' times conditions", [body.query, body.where or ""], conditions
    )
    if weights is not None and len(weights) != len(conditions):
        raise InputError(
            f"Request key 'weights' must have one for each condition; got {len(weights)} for "
            f"{len(conditions)}."
        )
    if len(set(conditions)) < len(conditions):
        raise InputError("Request key 'conditions' must not have one twice.")
    async with service.exclusive("search"):
        hits = await asyncio.to_thread(_search, body, service.index)
    return schemas.SearchAnswer(
        model=service.name, results=[schemas.SearchResult(**asdict(hit)) for hit in hits]
    )


def _search(body: schemas.SearchRequest, index: Index) -> list[Hit]:
    conditions, weights = body.conditions, body.weights
    weighted = dict(zip(conditions, weights, strict=True)) if conditions and weights else conditions
    try:
        return index.search(
            body.query,
            weighted,
            where=body.where,
            top=body.top,
            at_least=body.at_least,
            rescore=body.rescore,
        )
    except InputError as error:
        # An error of LanceDB means a damaged index, which the caller cannot help.
        if error.__cause__ is not None:
            raise ModelError(str(error)) from error
        raise


def _crossed(
    pairs: list[list[str]], conditions: list[str] | None, service: Service
) -> list[list[str]]:
    """Make columns with a row for each pair under each condition, all of a pair together."""
    each_condition = [""] if conditions is None else conditions
    rows = len(pairs) * len(each_condition)
    service.check_size(rows, "rows, pairs times conditions", *pairs, each_condition)
    check_rows(None, pairs=[text for pair in pairs for text in pair])
    check_rows(conditions)
    crossed = [(*pair, condition) for pair in pairs for condition in each_condition]
    return [list(column) for column in zip(*crossed, strict=True)]


def _pair_rows(values: FloatArray, pairs: list[list[str]]) -> list[list[float]]:
    """Make a row for each pair."""
    rounded = np.round(values.astype(np.float64), 6)
    table: list[list[float]] = rounded.reshape(len(pairs), -1).tolist()
    return table


def _rounded(value: np.float32) -> float:
    return round(float(value), 6)
