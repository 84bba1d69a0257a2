"""The routes that ask the model for what condsim adds to other servers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from fastapi import APIRouter

from condsim.errors import InputError, ModelError
from condsim.model.base import check_rows
from condsim.model.embedding import joined
from condsim.serving import schemas
from condsim.serving.errors import RequestError
from condsim.serving.service import HeaderCondition, Service, SharedService
from condsim.types import FloatArray

if TYPE_CHECKING:
    from condsim.model.explanation import Explanation
    from condsim.search.cluster import Clusters
    from condsim.search.dedupe import Duplicates
    from condsim.search.index import Index
    from condsim.search.query import Hit

router = APIRouter()
_post = partial(router.post, response_model_exclude_none=True)


@_post("/v1/score")
async def score(
    body: schemas.ScoreRequest, service: SharedService, header: HeaderCondition
) -> schemas.ScoreAnswer:
    """Score every pair under every condition."""
    service.check_model(body.model)
    conditions = _conditions(body.conditions, header)
    columns = _crossed(body.pairs, conditions, service)
    scores = await service.score(*columns, scale=body.scale, overall=body.overall)
    return schemas.ScoreAnswer(
        model=service.name,
        scale=body.scale,
        scores=_pair_rows(scores, body.pairs),
        unread=await service.unread_pairs(body.pairs) or None,
    )


@_post("/v1/applicability")
async def applicability(
    body: schemas.ApplicabilityRequest, service: SharedService, header: HeaderCondition
) -> schemas.ApplicabilityAnswer:
    """Estimate the probability that each condition applies to both texts of each pair."""
    service.check_model(body.model)
    scorer = service.embedder
    if scorer.head is None:
        raise InputError(
            f"{service.name} has no applicability head; serve a model that has one, such as the "
            "default."
        )
    conditions = _required(_conditions(body.conditions, header))
    columns = _crossed(body.pairs, conditions, service)
    probabilities = await service.batcher.submit(scorer.applicability, *columns)
    return schemas.ApplicabilityAnswer(
        model=service.name, probabilities=_pair_rows(probabilities, body.pairs)
    )


@_post("/v1/cluster")
async def cluster(
    body: schemas.ClusterRequest, service: SharedService, header: HeaderCondition
) -> schemas.ClusterAnswer:
    """Group texts under a condition; needs `condsim[search]` on the server."""
    service.check_model(body.model)
    condition = header if body.condition is None else body.condition
    vectors = await service.embed(condition, texts=body.texts)
    share = 0.0 if condition is None else body.overall
    if share:
        plain = await service.embed(None, texts=body.texts)
        vectors = joined(vectors, plain, overall=share)
    clusters = await service.in_thread(_cluster, body, condition, vectors, share)
    return schemas.ClusterAnswer(
        model=service.name,
        method=clusters.method,
        labels=clusters.labels.tolist(),
        clusters=[asdict(group) for group in clusters.clusters],
        silhouette=clusters.silhouette,
    )


def _cluster(
    body: schemas.ClusterRequest, condition: str | None, vectors: FloatArray, share: float
) -> Clusters:
    # Slow to import.
    from condsim.search.cluster import cluster

    return cluster(
        body.texts, condition, k=body.k, min_size=body.min_size, vectors=vectors, overall=share
    )


@_post("/v1/dedupe")
async def dedupe(
    body: schemas.DedupeRequest, service: SharedService, header: HeaderCondition
) -> schemas.DedupeAnswer:
    """Group texts that say the same under conditions; needs `condsim[search]` on the server."""
    service.check_model(body.model)
    conditions = _required(_conditions(body.conditions, header))
    rows = len(body.texts) * len(conditions)
    service.check_size(rows, "rows, texts times conditions", body.texts, conditions)
    check_rows(None, texts=body.texts)
    check_rows(conditions)
    found = await service.in_thread(_duplicates, body, conditions, service)
    duplicates = [
        schemas.DuplicateText(
            index=index,
            duplicate_of=int(found.kept_row[index]),
            score=round(float(found.score[index]), 6),
        )
        for index in np.flatnonzero(~found.kept).tolist()
    ]
    kept = np.flatnonzero(found.kept).tolist()
    return schemas.DedupeAnswer(model=service.name, kept=kept, duplicates=duplicates)


def _duplicates(body: schemas.DedupeRequest, conditions: list[str], service: Service) -> Duplicates:
    # Slow to import.
    from condsim.search.dedupe import find_duplicates

    with _faults_of_the_server():
        return find_duplicates(
            body.texts,
            service.queued_embedder,
            conditions,
            at_least=body.at_least,
            and_overall=body.and_overall,
            overall=body.overall,
            keep=body.keep,
            chain=body.chain,
            to=body.to,
        )


@_post("/v1/explain")
async def explain(
    body: schemas.ExplainRequest, service: SharedService, header: HeaderCondition
) -> schemas.ExplainAnswer:
    """Compute the contribution of each word of two texts to their score."""
    service.check_model(body.model)
    condition = header if body.condition is None else body.condition
    service.check_size(1, "pairs", [body.sentence1, body.sentence2, condition or ""])
    explanation = await service.in_thread(_explain, body, condition, service)
    return schemas.ExplainAnswer.model_validate(explanation.to_dict() | {"model": service.name})


def _explain(body: schemas.ExplainRequest, condition: str | None, service: Service) -> Explanation:
    # Slow to import.
    from condsim.rows.teach import function_answers

    return service.queued_scorer.explain(
        body.sentence1,
        body.sentence2,
        condition,
        scale=body.scale,
        samples=body.samples,
        read=function_answers,
    )


@_post("/v1/search")
async def search(
    body: schemas.SearchRequest, service: SharedService, header: HeaderCondition
) -> schemas.SearchAnswer:
    """Find the texts of the server's index most similar to a query, under conditions."""
    service.check_model(body.model)
    if service.index is None:
        raise RequestError(404, "This server has no index; start it with --index DIR.")
    conditions, weights = _conditions(body.conditions, header), body.weights
    names = conditions or []
    rows = max(body.top, body.rescore) * max(1, len(names))
    service.check_size(
        rows, "rows, 'rescore' times conditions", [body.query, body.where or ""], names
    )
    if weights is not None and len(weights) != len(names):
        raise InputError(
            f"Request key 'weights' must have one for each condition; got {len(weights)} for "
            f"{len(names)}."
        )
    if len(set(names)) < len(names):
        raise InputError("Request key 'conditions' must not have one twice.")
    hits = await service.in_thread(_search, body, conditions, service.index)
    return schemas.SearchAnswer(
        model=service.name, results=[schemas.SearchResult(**asdict(hit)) for hit in hits]
    )


def _search(body: schemas.SearchRequest, conditions: list[str] | None, index: Index) -> list[Hit]:
    weighted: list[str] | dict[str, float] | None = conditions
    if conditions and body.weights:
        weighted = dict(zip(conditions, body.weights, strict=True))
    with _faults_of_the_server():
        return index.search(
            body.query,
            weighted,
            where=body.where,
            top=body.top,
            at_least=body.at_least,
            rescore=body.rescore,
            overall=body.overall,
        )


@contextmanager
def _faults_of_the_server() -> Iterator[None]:
    """Separate errors with a cause, such as a damaged index, which the caller cannot help."""
    try:
        yield
    except InputError as error:
        if error.__cause__ is None:
            raise
        raise ModelError(str(error)) from error


def _conditions(conditions: list[str] | None, header: str | None) -> list[str] | None:
    return [header] if conditions is None and header is not None else conditions


def _required(conditions: list[str] | None) -> list[str]:
    if conditions is None:
        raise InputError("The request key 'condition' is missing.")
    return conditions


def _crossed(
    pairs: list[list[str]], conditions: list[str] | None, service: Service
) -> list[list[str]]:
    """Make columns with a row for each pair under each condition, all of a pair together."""
    rows = len(pairs) * len(conditions or [""])
    service.check_size(rows, "rows, pairs times conditions", *pairs, conditions or ())
    check_rows(None, pairs=[text for pair in pairs for text in pair])
    if conditions is None:
        return [list(column) for column in zip(*pairs, strict=True)]
    check_rows(conditions)
    crossed = [(*pair, condition) for pair in pairs for condition in conditions]
    return [list(column) for column in zip(*crossed, strict=True)]


def _pair_rows(values: FloatArray, pairs: list[list[str]]) -> list[list[float]]:
    """Make a row for each pair."""
    rounded = np.round(values.astype(np.float64), 6)
    table: list[list[float]] = rounded.reshape(len(pairs), -1).tolist()
    return table
