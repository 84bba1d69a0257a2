"""Modules of sentence-transformers that train on a weighted sum of objectives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.losses.merged_forward import embed_columns, merge_feature_batches
from sentence_transformers.sentence_transformer.losses import TripletLoss
from sentence_transformers.util import batch_to_device
from torch import Tensor, nn

from condsim.errors import InputError
from condsim.training.losses import high_low_pairs, tolerant_labels
from condsim.training.objectives import OBJECTIVES, LossOptions, check_weights

# Tokens of a sub-batch on a CPU, including its padding.
TOKENS_PER_SUB_BATCH = 768


@dataclass(frozen=True)
class Targets:
    """Labels of a batch.

    Attributes:
        gold: Gold similarity of each row in [0, 1], ``(rows,)`` float32.
        pair_ids: Id of each row's sentence pair, ``(rows,)`` int64, negative where the row has no
            partner; None when the labels carry no ids.
        list_ids: Id of the list that each row is also ranked in, such as the pairs of a group under
            one condition, ``(rows,)`` int64, negative where there is none; None without lists.
        weights: Weight of each row, ``(rows,)`` float32; None where all count equally.
    """

    gold: Tensor
    pair_ids: Tensor | None
    list_ids: Tensor | None = None
    weights: Tensor | None = None

    @classmethod
    def from_labels(cls, labels: Tensor, *, rows: int) -> Targets:
        """Read the label column of a batch.

        Args:
            labels: ``(rows,)`` gold similarities, or ``(rows, 2)``: gold and pair id. Ids are
                whole numbers below 2^24 (exact in float32), -1 for a row without a partner.
            rows: Number of rows in the batch.
        """
        if labels.shape not in ((rows,), (rows, 2)):
            raise InputError(
                f"Labels must have shape ({rows},), the gold similarities, or ({rows}, 2), gold "
                f"similarity and pair id; got {tuple(labels.shape)}."
            )
        gold = (labels if labels.ndim == 1 else labels[:, 0]).detach().float()  # (rows,)
        if not bool(((gold >= 0) & (gold <= 1)).all()):
            raise InputError(
                "Gold similarities must lie in [0, 1] (C-STS labels 1-5 become (label - 1) / 4), "
                f"got values from {gold.min():g} to {gold.max():g}."
            )
        pair_ids = labels[:, 1].detach().round().long() if labels.ndim == 2 else None  # (rows,)
        return cls(gold=gold, pair_ids=pair_ids)


def similarity_terms(
    similarities: Tensor, targets: Targets, weights: Mapping[str, float], options: LossOptions
) -> dict[str, Tensor]:
    """Compute every weighted objective that takes the similarities of rows, ``(rows,)``."""
    return {
        name: weight * _similarity_term(name, similarities, targets, options)
        for name, weight in weights.items()
        if OBJECTIVES[name].uses_similarities
    }


def _similarity_term(
    name: str, similarities: Tensor, targets: Targets, options: LossOptions
) -> Tensor:
    objective = OBJECTIVES[name]
    function, arguments = objective.function, objective.arguments(options)
    gold = targets.gold
    if objective.compares == "weighted rows":
        gold = tolerant_labels(gold, similarities, tolerance=options.middle_tolerance)
        return function(similarities, gold, targets.weights, **arguments)  # type: ignore[no-any-return]
    if objective.compares == "rows":
        return function(similarities, gold, **arguments)  # type: ignore[no-any-return]
    if targets.pair_ids is None:
        raise InputError(
            f"The objective {name!r} compares rows of one sentence pair, so labels must have shape "
            "(rows, 2): gold similarity and pair id."
        )
    if objective.compares == "lists":
        ids = [targets.pair_ids]
        if targets.list_ids is not None:
            ids.append(targets.list_ids)
        return function(similarities, gold, ids, targets.weights, **arguments)  # type: ignore[no-any-return]
    high, low = high_low_pairs(gold, targets.pair_ids, ties=options.ties == "kept")
    columns = [similarities[high], similarities[low]]
    if objective.compares == "pair gaps":
        columns.append(gold[high] - gold[low])
    return function(*columns, **arguments)  # type: ignore[no-any-return]


class ProjectionHead(nn.Module):
    """Linear → ReLU → Linear, of the encoder's own dimension (CCL §3.4).

    The paper does not describe g; this is the head of SimCLR (Chen et al., 2020). It belongs to
    the loss: it is trained and stored in checkpoints, and is not part of the saved encoder.
    """

    def __init__(self, dimension: int) -> None:
        """Make the head for embeddings of a dimension, which is also that of the projections."""
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(dimension, dimension), nn.ReLU(), nn.Linear(dimension, dimension)
        )
        average_gradients(self.layers)

    def forward(self, embeddings: Sequence[Tensor]) -> list[Tensor]:
        """Project several batches, ``(rows, dim)`` each, in one pass; the result is float32."""
        # Under bfloat16 the cosines of near views would take only a few different values.
        with torch.autocast(embeddings[0].device.type, enabled=False):
            projected: Tensor = self.layers(torch.cat([batch.float() for batch in embeddings]))
        return list(torch.split(projected, [len(batch) for batch in embeddings]))


def average_gradients(module: nn.Module) -> None:
    """Average the gradients of a loss's own weights over the processes of a run.

    The trainer does so for the encoder only; the weights of each process would drift apart.
    """
    for weight in module.parameters():
        weight.register_hook(_mean_over_processes)  # type: ignore[no-untyped-call]


def _mean_over_processes(gradient: Tensor) -> Tensor:
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return gradient
    total = gradient.clone()
    torch.distributed.all_reduce(total)
    return total / torch.distributed.get_world_size()


class WeightedLoss(nn.Module):
    """Base of losses over one weighted sum of objectives, such as Quad + MSE (C-STS §4.1).

    A loss returns a dict with one entry per term, already weighted; the sentence-transformers
    trainer logs each and trains on their sum.
    """

    def __init__(
        self,
        model: SentenceTransformer | CrossEncoder,
        weights: Mapping[str, float],
        options: LossOptions | None = None,
    ) -> None:
        """Make the loss.

        Args:
            model: The model to train.
            weights: Weight of each objective by its name in `OBJECTIVES`, at least 0. An objective
                of weight 0 is not computed.
            options: Numbers that the objectives take.

        Raises:
            InputError: If a name is unknown, a weight is negative or none is above 0.
        """
        super().__init__()
        self.model = model
        self.weights = check_weights(weights)
        self.options = options or LossOptions()

    def get_config_dict(self) -> dict[str, Any]:
        """Settings shown on the model card."""
        return {"weights": self.weights, **self.options.model_dump()}


class ObjectiveLoss(WeightedLoss):
    """Weighted sum of objectives for a bi- or tri-encoder.

    All terms share the embeddings. BCL takes one more forward over sentence 1, and shares a
    projection head with C-MSE. The batch is that of one process and one step: neither gradient
    accumulation nor more processes add pairs, or negatives of BCL.

    Inputs:
        | columns                          | labels            |
        |----------------------------------|-------------------|
        | two of conditional sentences     | gold, or gold, id |

    Example:
        >>> ObjectiveLoss(model, {"mse": 1.0, "correlation": 0.5})  # doctest: +SKIP

        The loss of CCL (Eq. 3):

        >>> weights = {"w-acl": 1.0, "bcl": 1.0, "mse": 1.0, "c-mse": 1.0}
        >>> ObjectiveLoss(model, weights, LossOptions(tau=3.0))  # doctest: +SKIP
    """

    def __init__(
        self,
        model: SentenceTransformer,
        weights: Mapping[str, float],
        options: LossOptions | None = None,
    ) -> None:
        """Make the loss, with a projection head if an objective needs one."""
        super().__init__(model, weights, options)
        kinds = {OBJECTIVES[name].compares for name in self.weights}
        self.needs_view = "views" in kinds
        self.head = None
        if kinds & {"views", "projections"}:
            self.head = ProjectionHead(embedding_dimension(model))

    def forward(
        self, sentence_features: Iterable[dict[str, Any]], labels: Tensor
    ) -> dict[str, Tensor]:
        """Compute the weighted terms of a batch.

        Args:
            sentence_features: The two preprocessed columns, ``rows`` rows each.
            labels: ``(rows,)`` or ``(rows, 2)``, see :meth:`Targets.from_labels`; objectives on
                pairs need the ids.
        """
        columns = list(sentence_features)
        if len(columns) != 2:
            raise InputError(
                f"The loss takes two columns of conditional sentences; got {len(columns)}."
            )
        # A forward adds its outputs to the mapping that it gets.
        first_features = dict(columns[0])
        first, second = _embed_in_sub_batches(self.model, columns)  # (rows, dim)
        targets = Targets.from_labels(labels, rows=len(first))
        similarities = F.cosine_similarity(first.float(), second.float(), dim=-1)  # (rows,)
        terms = similarity_terms(similarities, targets, self.weights, self.options)
        if self.head is not None:
            embeddings = [first, second]
            if self.needs_view:
                # Sentence 1 again under fresh dropout (CCL §3.4). It takes a separate forward: in
                # a merged one the tri-encoder would encode the repeated texts once.
                embeddings.append(self.model(first_features)["sentence_embedding"])
            terms |= self._projected_terms(self.head(embeddings), targets.gold)
        return terms

    def _projected_terms(self, projections: list[Tensor], gold: Tensor) -> dict[str, Tensor]:
        """Compute the terms of BCL and C-MSE from the projected columns, ``(rows, dim)`` each."""
        first, second, *views = [F.normalize(batch, dim=-1) for batch in projections]
        terms = {}
        for name, weight in self.weights.items():
            objective = OBJECTIVES[name]
            arguments = objective.arguments(self.options)
            if objective.compares == "projections":
                cosines = F.cosine_similarity(projections[0], projections[1], dim=-1)  # (rows,)
                terms[name] = weight * objective.function(cosines, gold, **arguments)
            elif objective.compares == "views":
                positives = (first * views[0]).sum(dim=-1)  # (rows,)
                with torch.autocast(first.device.type, enabled=False):
                    negatives = first @ second.T  # (rows, rows)
                terms[name] = weight * objective.function(positives, negatives, gold, **arguments)
        return terms


def embedding_dimension(model: SentenceTransformer) -> int:
    """Dimension of an encoder, which an objective with its own weights needs."""
    dimension = model.get_embedding_dimension()
    if dimension is None:
        raise InputError("The objective needs an encoder that knows its embedding dimension.")
    return int(dimension)


def _embed_in_sub_batches(model: nn.Module, columns: Sequence[dict[str, Any]]) -> Sequence[Tensor]:
    """Embed columns in one forward, or on a CPU in a few, of texts of similar length."""
    merged = merge_feature_batches(list(columns)) or {}
    tensors = {key: value for key, value in merged.items() if isinstance(value, Tensor)}
    mask = tensors.get("attention_mask")
    # A condition that is encoded separately has its own shape.
    same_shape = mask is not None and all(part.shape == mask.shape for part in tensors.values())
    if mask is None or not same_shape or mask.device.type != "cpu":
        return embed_columns(model, columns, separate_first=False)
    order = remaining = mask.sum(dim=1).argsort(descending=True)
    embeddings = []
    while len(remaining):
        size = max(1, TOKENS_PER_SUB_BATCH // int(mask[remaining[0]].sum()))
        rows, remaining = remaining[:size], remaining[size:]
        # Padding on the right is cut off; padding on the left stays.
        width = int(mask[rows].any(dim=0).nonzero().max()) + 1
        batch = {**merged, **{key: part[rows, :width] for key, part in tensors.items()}}
        embeddings.append(model(batch)["sentence_embedding"])
    return torch.cat(embeddings)[order.argsort()].chunk(len(columns))


class MixedLoss(nn.Module):
    """Weighted sums of objectives over the parts of a mixed batch, which share one encoding.

    A part holds the rows that are compared with each other: those of all sources that share the
    recipe's objective, those of a source with its own objective, or the inputs of a source
    with a teacher's vectors.

    Inputs:
        | columns                                       | labels                                 |
        |-----------------------------------------------|----------------------------------------|
        | sub-batches of distinct conditional sentences | for each part in the batch, its tensors |

    The tensors of a part with labels are ``first`` and ``second`` (rows of the inputs, counted over
    all sub-batches), ``gold``, ``pair_ids``, ``list_ids`` and ``weights``, each ``(rows,)``; those
    of a part with vectors are ``inputs``, ``(m,)``, and ``vectors``, ``(m, teacher's dim)``.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        parts: Mapping[str, Mapping[str, float]],
        options: LossOptions | None = None,
    ) -> None:
        """Make the loss from the weights of each part's objectives."""
        super().__init__()
        self.model = model
        self.options = options or LossOptions()
        self.parts = {name: check_weights(weights) for name, weights in parts.items()}

    def forward(
        self,
        sentence_features: Iterable[dict[str, Any]],
        labels: Mapping[str, Mapping[str, Tensor]],
    ) -> dict[str, Tensor]:
        """Compute the weighted terms of a batch.

        Returns:
            A float32 scalar for each objective of the parts in the batch, multiplied by its weight;
            terms of a part other than ``train`` are named after it, such as ``plain-mse``.
        """
        encoded = [self.model(dict(batch))["sentence_embedding"] for batch in sentence_features]
        vectors = torch.cat(encoded).float()  # (inputs, dim)
        terms: dict[str, Tensor] = {}
        for name, part in labels.items():
            prefix = "" if name == "train" else f"{name}-"
            for term, value in self._part_terms(vectors, part, self.parts[name]).items():
                terms[f"{prefix}{term}"] = value
        return terms

    def _part_terms(
        self, vectors: Tensor, part: Mapping[str, Tensor], weights: Mapping[str, float]
    ) -> dict[str, Tensor]:
        if "vectors" in part:
            student = vectors[part["inputs"]]
            terms = {}
            for name, weight in weights.items():
                objective = OBJECTIVES[name]
                arguments = objective.arguments(self.options)
                terms[name] = weight * objective.function(student, part["vectors"], **arguments)
            return terms
        similarities = F.cosine_similarity(vectors[part["first"]], vectors[part["second"]], dim=-1)
        targets = Targets(part["gold"], part["pair_ids"], part["list_ids"], part["weights"])
        return similarity_terms(similarities, targets, weights, self.options)

    def get_config_dict(self) -> dict[str, Any]:
        """Settings shown on the model card."""
        return {"parts": self.parts, **self.options.model_dump()}


class CrossEncoderLoss(WeightedLoss):
    """Weighted sum of objectives over the raw score of a cross-encoder (C-STS §4.1).

    The score is taken as the similarity in [0, 1], without an activation. ``classification`` takes
    a logit for each label instead, by itself.

    Inputs:
        | columns                          | labels            |
        |----------------------------------|-------------------|
        | text, or the two texts of a pair | gold, or gold, id |
    """

    def forward(
        self,
        inputs: Sequence[Sequence[str]],
        labels: Tensor | Sequence[Tensor],
        prompt: str | None = None,
        task: str | None = None,
    ) -> dict[str, Tensor]:
        """Compute the weighted terms of a batch.

        Args:
            inputs: One or two columns, ``rows`` texts each.
            labels: ``(rows,)`` or ``(rows, 2)``, see :meth:`Targets.from_labels`; the collator of
                the library makes a list of rows from a list column.
            prompt: Passed to the model's preprocessing, as is ``task``.
            task: See ``prompt``.
        """
        if len(inputs) not in (1, 2):
            raise InputError(f"The loss takes one or two text columns; got {len(inputs)}.")
        device = next(self.model.parameters()).device
        texts: list[Any] = list(inputs[0] if len(inputs) == 1 else zip(*inputs, strict=True))
        features = batch_to_device(self.model.preprocess(texts, prompt=prompt, task=task), device)
        outputs = self.model(features)["scores"]  # (rows, outputs)
        if not isinstance(labels, Tensor):
            labels = torch.stack(list(labels))
        targets = Targets.from_labels(labels.to(device), rows=len(outputs))
        terms = {
            name: weight * OBJECTIVES[name].function(outputs, targets.gold)
            for name, weight in self.weights.items()
            if OBJECTIVES[name].compares == "levels"
        }
        return terms or similarity_terms(outputs.view(-1), targets, self.weights, self.options)


class FloatTripletLoss(TripletLoss):
    """sentence-transformers' triplet loss with distances in float32.

    Under bfloat16 the distances of near texts would be equal.
    """

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Compute the loss of anchors, positives and negatives, ``(rows, dim)`` each."""
        floats = [batch.float() for batch in embeddings]
        return super().compute_loss_from_embeddings(floats, labels)
