"""The routes that ask the model."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
from fastapi import APIRouter

from condsim.errors import InputError, ModelError
from condsim.model.base import check_rows
from condsim.serving.errors import RequestError
from condsim.serving.schemas import (
    ApplicabilityAnswer,
    ApplicabilityRequest,
    ClusterAnswer,
    ClusterRequest,
    Embedding,
    EmbeddingsAnswer,
    EmbeddingsRequest,
    ExplainAnswer,
    ExplainRequest,
    Found,
    Ranked,
    RerankAnswer,
    RerankRequest,
    ScoreAnswer,
    ScoreRequest,
    SearchAnswer,
    SearchRequest,
    TeiRanked,
    TeiRerankAnswer,
    TeiRerankRequest,
)
from condsim.serving.service import Service, post
from condsim.types import FloatArray

if TYPE_CHECKING:
    from condsim.model.explanation import Explanation
    from condsim.search.cluster import Clusters
    from condsim.search.index import Index
    from condsim.search.query import Hit

router = APIRouter()


@post(router, "/v1/embeddings", EmbeddingsRequest, EmbeddingsAnswer)
async def embeddings(body: EmbeddingsRequest, service: Service) -> EmbeddingsAnswer:
    """Embeds texts, each under a condition."""
    conditions = body.condition or []
    service.check_size(len(body.input), "texts", body.input, conditions)
    scorer = service.embedder
    if body.dimensions not in (None, scorer.dimension):
        raise InputError(
            f"The 'dimensions' must be those of the model, {scorer.dimension}. Got "
            f"{body.dimensions}; leave the key out."
        )
    columns = [body.input]
    if conditions:
        columns.append(conditions * (len(body.input) if len(conditions) == 1 else 1))
    check_rows(columns[1] if conditions else None, input=body.input)
    vectors = await service.batcher.submit(scorer.encode, *columns)
    shown: Sequence[str | list[float]]
    if body.encoding_format == "base64":
        shown = [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in vectors]
    else:
        shown = np.round(vectors.astype(np.float64), 8).tolist()
    data = [Embedding.model_construct(index=i, embedding=one) for i, one in enumerate(shown)]
    return EmbeddingsAnswer(data=data, model=service.name)


@post(router, "/v1/rerank", RerankRequest, RerankAnswer)
async def rerank(body: RerankRequest, service: Service) -> RerankAnswer:
    """Sorts documents by their similarity to a query, under a condition."""
    scores = await _against(body.query, body.documents, body.condition, service)
    best = np.argsort(-scores, kind="stable")[: body.top_n].tolist()
    results = [
        Ranked(
            index=place,
            relevance_score=_figure(scores[place]),
            document={"text": body.documents[place]} if body.return_documents else None,
        )
        for place in best
    ]
    return RerankAnswer(id=str(uuid4()), model=service.name, results=results)


post(router, "/v2/rerank", RerankRequest, RerankAnswer)(rerank)  # where Cohere's second client asks


@post(router, "/rerank", TeiRerankRequest, TeiRerankAnswer)
async def tei_rerank(body: TeiRerankRequest, service: Service) -> TeiRerankAnswer:
    """The same as text-embeddings-inference has it."""
    scores = await _against(body.query, body.texts, body.condition, service, raw=body.raw_scores)
    best = np.argsort(-scores, kind="stable").tolist()
    return TeiRerankAnswer(
        [
            TeiRanked(
                index=place,
                score=_figure(scores[place]),
                text=body.texts[place] if body.return_text else None,
            )
            for place in best
        ]
    )


async def _against(
    query: str, documents: list[str], condition: str | None, service: Service, *, raw: bool = False
) -> FloatArray:
    """Scores a query with each document, (n,)."""
    service.check_size(len(documents), "documents", [query, condition or ""], documents)
    check_rows(condition, query=query, documents=documents)
    rows = len(documents)
    conditions = None if condition is None else [condition] * rows
    return await service.score(
        [query] * rows, documents, conditions, scale="raw" if raw else "unit"
    )


@post(router, "/v1/score", ScoreRequest, ScoreAnswer)
async def score(body: ScoreRequest, service: Service) -> ScoreAnswer:
    """Scores every pair under every condition."""
    columns = _crossed(body.pairs, body.conditions, service)
    first, second = columns[:2]
    scores = await service.score(
        first, second, None if body.conditions is None else columns[2], scale=body.scale
    )
    return ScoreAnswer(model=service.name, scale=body.scale, scores=_table(scores, body.pairs))


@post(router, "/v1/applicability", ApplicabilityRequest, ApplicabilityAnswer)
async def applicability(body: ApplicabilityRequest, service: Service) -> ApplicabilityAnswer:
    """Says how likely each condition applies to both texts of each pair."""
    scorer = service.embedder
    if scorer.head is None:
        raise InputError(
            f"{service.name} has no applicability head; serve a model that has one, such as the "
            "default."
        )
    columns = _crossed(body.pairs, body.conditions, service)
    found = await service.batcher.submit(scorer.applicability, *columns)
    return ApplicabilityAnswer(model=service.name, probabilities=_table(found, body.pairs))


@post(router, "/v1/cluster", ClusterRequest, ClusterAnswer)
async def cluster(body: ClusterRequest, service: Service) -> ClusterAnswer:
    """Groups texts under a condition; needs `condsim[search]` on the server."""
    service.check_size(len(body.texts), "texts", body.texts, [body.condition or ""])
    check_rows(body.condition, texts=body.texts)
    columns = [body.texts]
    if body.condition is not None:
        columns.append([body.condition] * len(body.texts))
    vectors = await service.batcher.submit(service.embedder.encode, *columns)
    async with service.turn("cluster"):
        found = await asyncio.to_thread(_clusters, body, vectors)
    return ClusterAnswer(
        model=service.name,
        method=found.method,
        labels=found.labels.tolist(),
        clusters=[asdict(one) for one in found.clusters],
        silhouette=found.silhouette,
    )


def _clusters(body: ClusterRequest, vectors: FloatArray) -> Clusters:
    from condsim.search.cluster import cluster  # slow to import

    return cluster(body.texts, body.condition, k=body.k, min_size=body.min_size, vectors=vectors)


@post(router, "/v1/explain", ExplainRequest, ExplainAnswer)
async def explain(body: ExplainRequest, service: Service) -> ExplainAnswer:
    """Says what each word of two texts adds to their score."""
    service.check_size(1, "pairs", [body.sentence1, body.sentence2, body.condition or ""])
    async with service.turn("explain"):
        found = await asyncio.to_thread(_explained, body, service)
    return ExplainAnswer.model_validate(found.to_dict() | {"model": service.name})


def _explained(body: ExplainRequest, service: Service) -> Explanation:
    from condsim.rows.teach import function_answers  # slow to import

    return service.beside.explain(
        body.sentence1,
        body.sentence2,
        body.condition,
        scale=body.scale,
        samples=body.samples,
        read=function_answers,
    )


@post(router, "/v1/search", SearchRequest, SearchAnswer)
async def search(body: SearchRequest, service: Service) -> SearchAnswer:
    """Finds the texts of the server's index most similar to a query, under conditions."""
    if service.index is None:
        raise RequestError(404, "This server has no index; start it with --index DIR.")
    conditions, weights = body.conditions, body.weights
    rows = max(body.top, body.rescore) * len(conditions or [""])
    service.check_size(
        rows, "rows, 'rescore' times conditions", [body.query, body.where or ""], conditions or []
    )
    if weights is not None and len(weights) != len(conditions or []):
        raise InputError(
            f"Request key 'weights' must have one for each condition. Got {len(weights)} for "
            f"{len(conditions or [])}."
        )
    if conditions and len(set(conditions)) < len(conditions):
        raise InputError("Request key 'conditions' must not have one twice.")
    async with service.turn("search"):
        hits = await asyncio.to_thread(_hits, body, service.index)
    return SearchAnswer(model=service.name, results=[Found(**asdict(hit)) for hit in hits])


def _hits(body: SearchRequest, index: Index) -> list[Hit]:
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
        if error.__cause__ is not None:  # of LanceDB: a damaged index, no fault of the caller's
            raise ModelError(str(error)) from error
        raise


def _crossed(
    pairs: list[list[str]], conditions: list[str] | None, service: Service
) -> list[list[str]]:
    """Columns with a row for each pair under each condition, all of a pair together."""
    each = [""] if conditions is None else conditions
    rows = len(pairs) * len(each)
    service.check_size(rows, "rows, pairs times conditions", *pairs, each)
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    check_rows(None, pairs=[*first, *second])
    check_rows(conditions)
    crossed = [(*pair, one) for pair in pairs for one in each]
    return [list(column) for column in zip(*crossed, strict=True)]


def _table(values: FloatArray, pairs: list[list[str]]) -> list[list[float]]:
    """One row for each pair."""
    table: list[list[float]] = (
        np.round(values.astype(np.float64), 6).reshape(len(pairs), -1).tolist()
    )
    return table


def _figure(value: np.float32) -> float:
    return round(float(value), 6)
