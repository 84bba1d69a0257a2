"""The routes that ask the model: condsim's own, and the routes of other servers."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from fastapi import APIRouter

from condsim.errors import InputError
from condsim.model.applicability import silence
from condsim.model.base import Scale, check_rows
from condsim.model.embedding import joined
from condsim.serving import schemas
from condsim.serving.errors import RequestError, faults_of_the_server
from condsim.serving.service import HeaderCondition, Service, SharedService
from condsim.types import FloatArray

if TYPE_CHECKING:
    from condsim.search.clusters import Clusters
    from condsim.search.dedupe import Duplicates
    from condsim.search.index import Index
    from condsim.search.match import Matches
    from condsim.search.query import Hit

router = APIRouter()
_post = partial(router.post, response_model_exclude_none=True)


@_post("/v1/score")
async def score(
    body: schemas.ScoreRequest, service: SharedService, header: HeaderCondition
) -> schemas.ScoreAnswer:
    """Score every pair under every condition."""
    service.check_model(body.model)
    conditions = service.conditions(body.conditions, header)
    first, second, names = _crossed(body.pairs, conditions, service)
    marked = names if service.marks(len(first), body.applicability) else None
    work = service.score(first, second, names, scale=body.scale, overall=body.overall)
    chances = remarks = None
    if marked is not None:
        asked = service.mentions(first, second, marked)
        scores, (mentions1, mentions2) = await asyncio.gather(work, asked)
        chances = _pair_rows(mentions1 * mentions2, body.pairs)
        texts = list(map(silence, mentions1.tolist(), mentions2.tolist()))
        remarks = np.reshape(texts, (len(body.pairs), -1)).tolist()
    else:
        scores = await work
    return schemas.ScoreAnswer(
        model=service.name,
        scale=body.scale,
        scores=_pair_rows(scores, body.pairs),
        applicability=chances,
        remarks=remarks,
        unread=await service.unread_pairs(body.pairs) or None,
    )


@_post("/v1/applicability")
async def applicability(
    body: schemas.ApplicabilityRequest, service: SharedService, header: HeaderCondition
) -> schemas.ApplicabilityAnswer:
    """Estimate the probability that each condition applies to both texts of each pair."""
    service.check_model(body.model)
    service.marks(0, True)
    conditions = _required(service.conditions(body.conditions, header))
    first, second, names = _crossed(body.pairs, conditions, service)
    mentions1, mentions2 = await service.mentions(first, second, names or [])
    return schemas.ApplicabilityAnswer(
        model=service.name, probabilities=_pair_rows(mentions1 * mentions2, body.pairs)
    )


@_post("/v1/cluster")
async def cluster(
    body: schemas.ClusterRequest, service: SharedService, header: HeaderCondition
) -> schemas.ClusterAnswer:
    """Group texts under a condition; needs `condsim[search]` on the server."""
    service.check_model(body.model)
    condition = service.condition(body.condition, header)
    vectors = await service.embed(condition, texts=body.texts)
    share = 0.0 if service.own_share(condition) else body.overall
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
        unread=await service.unread_texts(body.texts) or None,
    )


def _cluster(
    body: schemas.ClusterRequest, condition: str | None, vectors: FloatArray, share: float
) -> Clusters:
    # Slow to import.
    from condsim.search.clustering import cluster

    return cluster(
        body.texts, condition, k=body.k, min_size=body.min_size, vectors=vectors, overall=share
    )


@_post("/v1/dedupe")
async def dedupe(
    body: schemas.DedupeRequest, service: SharedService, header: HeaderCondition
) -> schemas.DedupeAnswer:
    """Group texts that say the same under conditions; needs `condsim[search]` on the server."""
    service.check_model(body.model)
    conditions = _required(service.conditions(body.conditions, header))
    rows = len(body.texts) * len(conditions)
    service.check_size(rows, "rows, texts times conditions", body.texts, conditions)
    check_rows(None, texts=body.texts)
    check_rows(conditions)
    result = await service.in_thread(_duplicates, body, conditions, service)
    scores = _rounded(result.score)
    duplicates = [
        schemas.DuplicateText(
            index=index, duplicate_of=int(result.kept_row[index]), score=scores[index]
        )
        for index in np.flatnonzero(~result.kept).tolist()
    ]
    kept_rows = np.flatnonzero(result.kept).tolist()
    return schemas.DedupeAnswer(
        model=service.name,
        kept=kept_rows,
        duplicates=duplicates,
        unread=await service.unread_texts(body.texts) or None,
    )


def _duplicates(body: schemas.DedupeRequest, conditions: list[str], service: Service) -> Duplicates:
    # Slow to import.
    from condsim.search.dedupe import find_duplicates

    with faults_of_the_server():
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


@_post("/v1/match")
async def match(
    body: schemas.MatchRequest, service: SharedService, header: HeaderCondition
) -> schemas.MatchAnswer:
    """Find for each text its nearest of a second list; needs `condsim[search]` on the server."""
    service.check_model(body.model)
    conditions = service.conditions(body.conditions, header)
    texts, names = [*body.texts1, *body.texts2], conditions or []
    rows = len(texts) * max(1, len(names))
    service.check_size(rows, "rows, texts times conditions", texts, names)
    check_rows(None, texts=texts)
    found = await service.in_thread(_matches, body, conditions, service)
    gaps = [None if np.isnan(gap) else gap for gap in _rounded(found.gap)]
    columns = (found.rows1.tolist(), found.rows2.tolist(), _rounded(found.score), gaps)
    return schemas.MatchAnswer(
        model=service.name,
        matches=[
            schemas.MatchedTexts(index1=index1, index2=index2, score=score, gap=gap)
            for index1, index2, score, gap in zip(*columns, strict=True)
        ],
        unmatched1=found.unmatched1.tolist(),
        unmatched2=found.unmatched2.tolist(),
    )


def _matches(body: schemas.MatchRequest, conditions: list[str] | None, service: Service) -> Matches:
    # Slow to import.
    from condsim.search.match import find_matches

    return find_matches(
        body.texts1,
        body.texts2,
        service.queued_embedder,
        conditions,
        at_least=body.at_least,
        one_to_many=body.one_to_many,
        overall=body.overall,
    )


@_post("/v1/explain")
async def explain(
    body: schemas.ExplainRequest, service: SharedService, header: HeaderCondition
) -> schemas.ExplainAnswer:
    """Compute the contribution of each word of two texts to their score."""
    service.check_model(body.model)
    condition = service.condition(body.condition, header)
    service.check_size(1, "pairs", [body.sentence1, body.sentence2, condition or ""])
    explanation = await service.in_thread(
        service.queued_scorer.explain,
        body.sentence1,
        body.sentence2,
        condition,
        scale=body.scale,
        samples=body.samples,
    )
    return schemas.ExplainAnswer.model_validate(explanation.to_dict() | {"model": service.name})


@_post("/v1/search")
async def search(
    body: schemas.SearchRequest, service: SharedService, header: HeaderCondition
) -> schemas.SearchAnswer:
    """Find the texts of the server's index most similar to a query, under conditions."""
    service.check_model(body.model)
    if service.index is None:
        raise RequestError(404, "This server has no index; start it with --index DIR.")
    conditions, weights = service.conditions(body.conditions, header), body.weights
    names = conditions or []
    rows = max(body.top, body.rescore) * max(1, len(names))
    service.check_size(
        rows, "rows, 'rescore' times conditions", [body.query, body.where or ""], names
    )
    if len(weights or names) != len(names) or len(set(names)) < len(names):
        raise InputError(
            "Request key 'conditions' must not have one twice, and 'weights' must have one for "
            f"each; got {len(weights or names)} for {len(set(names))}."
        )
    hits = await service.in_thread(_search, body, conditions, service.index)
    return schemas.SearchAnswer(
        model=service.name, results=[schemas.SearchResult(**asdict(hit)) for hit in hits]
    )


def _search(body: schemas.SearchRequest, conditions: list[str] | None, index: Index) -> list[Hit]:
    weighted: list[str] | dict[str, float] | None = conditions
    if conditions and body.weights:
        weighted = dict(zip(conditions, body.weights, strict=True))
    with faults_of_the_server():
        return index.search(
            body.query,
            weighted,
            where=body.where,
            top=body.top,
            at_least=body.at_least,
            rescore=body.rescore,
            overall=body.overall,
        )


def _required(conditions: list[str] | None) -> list[str]:
    if conditions is None:
        raise InputError("The request key 'condition' is missing.")
    return conditions


def _crossed(
    pairs: list[list[str]], conditions: list[str] | None, service: Service
) -> tuple[list[str], list[str], list[str] | None]:
    """Make columns with a row for each pair under each condition, all of a pair together."""
    rows = len(pairs) * len(conditions or [""])
    service.check_size(rows, "rows, pairs times conditions", *pairs, conditions or ())
    check_rows(None, pairs=[text for pair in pairs for text in pair])
    first, second = (list(column) for column in zip(*pairs, strict=True))
    if conditions is None:
        return first, second, None
    check_rows(conditions)
    crossed = [(*pair, condition) for pair in pairs for condition in conditions]
    first, second, names = (list(column) for column in zip(*crossed, strict=True))
    return first, second, names


def _pair_rows(values: FloatArray, pairs: list[list[str]]) -> list[list[float]]:
    """Make a row for each pair."""
    return np.reshape(_rounded(values), (len(pairs), -1)).tolist()


@_post("/embeddings", include_in_schema=False)
@_post("/v1/embeddings")
async def embeddings(
    body: schemas.EmbeddingsRequest, service: SharedService, header: HeaderCondition
) -> schemas.EmbeddingsAnswer:
    """Embed texts, each under a condition."""
    service.check_model(body.model)
    _check_dimensions("dimensions", body.dimensions, service)
    condition = service.condition(body.condition, header)
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
    condition = service.condition(body.condition, header)
    vectors = await service.embed(condition, inputs=body.inputs)
    return _encoded(vectors, "float")


@_post("/v2/embed")
async def cohere_embed(
    body: schemas.CohereEmbedRequest, service: SharedService, header: HeaderCondition
) -> schemas.CohereEmbedAnswer:
    """Embed texts in the form of Cohere."""
    service.check_model(body.model)
    _check_dimensions("output_dimension", body.output_dimension, service)
    condition = service.condition(body.condition, header)
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
    condition = service.condition(body.condition, header)
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
    condition = service.condition(body.condition, header)
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
    first, second = rows.sentences
    return await service.score(first, second, rows.conditions, scale=scale)


def _check_dimensions(key: str, dimensions: int | None, service: Service) -> None:
    if dimensions not in (None, service.embedder.dimension):
        raise InputError(
            f"The {key!r} must equal the model's, {service.embedder.dimension}; got {dimensions}."
        )


def _encoded(vectors: FloatArray, kind: str) -> list[Any]:
    """Convert vectors to numbers, or to the bytes of each in base64."""
    if kind == "base64":
        return [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in vectors]
    return [*np.round(vectors.astype(np.float64), 8).tolist()]


def _rounded(scores: FloatArray) -> list[float]:
    rounded: list[float] = np.round(scores.astype(np.float64), 6).tolist()
    return rounded
