"""Modules of sentence-transformers that train on a weighted sum of objectives.

Each computes the values of a batch that its objectives compare, and `weighted_terms` applies the
functions of `OBJECTIVES` to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.losses.merged_forward import embed_columns, merge_feature_batches
from sentence_transformers.sentence_transformer.losses import TripletLoss
from sentence_transformers.util import batch_to_device
from torch import Tensor, nn

from condsim.model.inputs import CPU_TOKENS, token_batches
from condsim.training.losses import high_low_pairs, tolerant_labels
from condsim.training.objectives import OBJECTIVES, LossOptions


def weighted_terms(
    values: Mapping[str, Any], weights: Mapping[str, float], options: LossOptions
) -> dict[str, Tensor]:
    """Compute each objective from the values of a batch that it takes, times its weight."""
    terms = {}
    for name, weight in weights.items():
        objective = OBJECTIVES[name]
        compared = [values[key] for key in objective.takes]
        terms[name] = weight * objective.function(*compared, **objective.arguments(options))
    return terms


def similarity_values(
    similarities: Tensor,
    labels: Tensor,
    ids: Sequence[Tensor],
    options: LossOptions,
    weights: Tensor | None = None,
) -> dict[str, Any]:
    """Collect the values that objectives on the similarities of rows take.

    The first ``ids`` name the sentence pairs, others the lists that rows are ranked
    in; each is ``(rows,)``, negative where there is none.
    """
    high, low = high_low_pairs(labels, ids[0], ties=options.ties == "kept")
    return {
        "similarities": similarities,
        "labels": labels,
        "tolerant_labels": tolerant_labels(
            labels, similarities, tolerance=options.middle_tolerance
        ),
        "weights": weights,
        "high": similarities[high],
        "low": similarities[low],
        "gaps": labels[high] - labels[low],
        "ids": ids,
    }


def split_labels(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Split the label column of a batch into gold and pair ids, ``(rows,)`` each.

    It is ``(rows,)``, gold similarities, or ``(rows, 2)``, gold and pair id. Ids are whole numbers
    below 2^24 (exact in float32), -1 for a row without a partner.
    """
    if labels.ndim == 1:
        return labels.float(), torch.full_like(labels, -1, dtype=torch.long)
    return labels[:, 0].float(), labels[:, 1].round().long()


class ProjectionHead(nn.Module):
    """Linear → ReLU → Linear, of the encoder's own dimension (CCL §3.4).

    The paper does not describe g; this is the head of SimCLR (Chen et al., 2020). It belongs to
    the loss: it is trained and stored in checkpoints, and is not part of the saved encoder.
    """

    def __init__(self, dimension: int) -> None:
        """Make the head for embeddings of a dimension, which projections have as well."""
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
    trainer logs each and trains on their sum. Objectives of weight 0 are not computed.
    """

    def __init__(
        self,
        model: SentenceTransformer | CrossEncoder,
        weights: Mapping[str, float],
        options: LossOptions | None = None,
    ) -> None:
        """Make the loss from the weight of each objective by its name in `OBJECTIVES`."""
        super().__init__()
        self.model = model
        self.weights = {name: float(weight) for name, weight in weights.items() if weight}
        self.options = options or LossOptions()


class ObjectiveLoss(WeightedLoss):
    """Weighted sum of objectives for a bi- or tri-encoder.

    All terms share the embeddings. BCL takes one more forward over sentence 1, and shares a
    projection head with C-MSE. The batch belongs to one process and one step: neither gradient
    accumulation nor more processes add pairs, or negatives of BCL.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        weights: Mapping[str, float],
        options: LossOptions | None = None,
    ) -> None:
        """Make the loss, with a projection head if an objective needs one."""
        super().__init__(model, weights, options)
        taken = {key for name in self.weights for key in OBJECTIVES[name].takes}
        self.needs_view = "positives" in taken
        self.head = None
        if taken & {"positives", "projected"}:
            self.head = ProjectionHead(model.get_embedding_dimension() or 0)

    def forward(
        self, sentence_features: Iterable[dict[str, Any]], labels: Tensor
    ) -> dict[str, Tensor]:
        """Compute the weighted terms of a batch of two preprocessed columns; see `split_labels`."""
        columns = list(sentence_features)
        # A forward adds its outputs to the mapping that it gets.
        first_features = dict(columns[0])
        first, second = _embed_in_sub_batches(self.model, columns)  # (rows, dim)
        similarities = F.cosine_similarity(first.float(), second.float(), dim=-1)  # (rows,)
        gold, pair_ids = split_labels(labels)
        values = similarity_values(similarities, gold, [pair_ids], self.options)
        if self.head is not None:
            embeddings = [first, second]
            if self.needs_view:
                # Sentence 1 again under fresh dropout (CCL §3.4). It takes a separate forward: in
                # a merged one the tri-encoder would encode the repeated texts once.
                embeddings.append(self.model(first_features)["sentence_embedding"])
            values |= _projected_values(self.head(embeddings))
        return weighted_terms(values, self.weights, self.options)


def _projected_values(projections: Sequence[Tensor]) -> dict[str, Tensor]:
    """Collect the values of BCL and C-MSE from the projected columns, ``(rows, dim)`` each."""
    values = {"projected": F.cosine_similarity(projections[0], projections[1], dim=-1)}  # (rows,)
    first, second, *views = [F.normalize(batch, dim=-1) for batch in projections]
    for view in views:
        values["positives"] = (first * view).sum(dim=-1)  # (rows,)
        with torch.autocast(first.device.type, enabled=False):
            values["negatives"] = first @ second.T  # (rows, rows)
    return values


def _embed_in_sub_batches(model: nn.Module, columns: Sequence[dict[str, Any]]) -> Sequence[Tensor]:
    """Embed columns in one forward, or on a CPU in sub-batches of texts of similar length."""
    merged = merge_feature_batches(list(columns)) or {}
    tensors = {key: value for key, value in merged.items() if isinstance(value, Tensor)}
    mask = tensors.get("attention_mask")
    # A tri-encoder's conditions are separate tensors of another shape, so rows cannot be picked.
    same_shape = mask is not None and all(part.shape == mask.shape for part in tensors.values())
    if mask is None or not same_shape or mask.device.type != "cpu":
        return embed_columns(model, columns, separate_first=False)
    lengths = mask.sum(dim=1).numpy()
    batches = [torch.from_numpy(rows) for rows in token_batches(lengths, tokens=CPU_TOKENS)]
    embeddings = []
    for rows in batches:
        # Padding on the right is cut off; padding on the left stays.
        width = int(mask[rows].any(dim=0).nonzero().max()) + 1
        batch = {**merged, **{key: part[rows, :width] for key, part in tensors.items()}}
        embeddings.append(model(batch)["sentence_embedding"])
    return torch.cat(embeddings)[torch.cat(batches).argsort()].chunk(len(columns))


class MixedLoss(nn.Module):
    """Weighted sums of objectives over the parts of a mixed batch, which share one encoding.

    A part holds the rows that are compared with each other: rows of all sources that share the
    recipe's objective, rows of a source with its own objective, or the inputs of a source
    with a teacher's vectors.

    The columns are sub-batches of distinct inputs, the labels the tensors of each part. The tensors
    of a part with labels are ``first`` and ``second`` (rows of the inputs, counted over all
    sub-batches), ``gold``, ``pair_ids``, ``list_ids`` and ``weights``, each ``(rows,)``. A
    part with vectors has ``inputs``, ``(m,)``, and ``vectors``, ``(m, teacher's dim)``.
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
        self.parts = parts

    def forward(
        self,
        sentence_features: Iterable[dict[str, Any]],
        labels: Mapping[str, Mapping[str, Tensor]],
    ) -> dict[str, Tensor]:
        """Compute the weighted terms of a batch.

        Terms of a part other than ``train`` are named after it, such as ``plain-mse``.
        """
        encoded = [self.model(dict(batch))["sentence_embedding"] for batch in sentence_features]
        embeddings = torch.cat(encoded).float()  # (inputs, dim)
        terms: dict[str, Tensor] = {}
        for name, part in labels.items():
            if "vectors" in part:
                student = _rows(embeddings, part["inputs"])
                values: dict[str, Any] = {"student": student, "teacher": part["vectors"]}
            else:
                first, second = (_rows(embeddings, part[side]) for side in ("first", "second"))
                similarities = F.cosine_similarity(first, second, dim=-1)
                ids = [part["pair_ids"], part["list_ids"]]
                values = similarity_values(
                    similarities, part["gold"], ids, self.options, weights=part["weights"]
                )
            prefix = "" if name == "train" else f"{name}-"
            weighted = weighted_terms(values, self.parts[name], self.options)
            terms |= {f"{prefix}{term}": value for term, value in weighted.items()}
        return terms


def _rows(vectors: Tensor, rows: Tensor) -> Tensor:
    # Unlike indexing, the gradient adds up in the same order every time.
    return F.embedding(rows, vectors)


class CrossEncoderLoss(WeightedLoss):
    """Weighted sum of objectives over the raw score of a cross-encoder (C-STS §4.1).

    The score is taken as the similarity in [0, 1], without an activation. ``classification`` takes
    a logit for each label instead, by itself.
    """

    def forward(
        self,
        inputs: Sequence[Sequence[str]],
        labels: Tensor | Sequence[Tensor],
        prompt: str | None = None,
        task: str | None = None,
    ) -> dict[str, Tensor]:
        """Compute the weighted terms of a batch of one or two text columns; see `split_labels`.

        The collator of the library makes a list of rows from a list column of labels.
        """
        device = next(self.model.parameters()).device
        texts: list[Any] = list(inputs[0] if len(inputs) == 1 else zip(*inputs, strict=True))
        features = batch_to_device(self.model.preprocess(texts, prompt=prompt, task=task), device)
        outputs = self.model(features)["scores"]  # (rows, outputs)
        if not isinstance(labels, Tensor):
            labels = torch.stack(list(labels))
        gold, pair_ids = split_labels(labels.to(device))
        if "classification" in self.weights:
            values: dict[str, Any] = {"logits": outputs, "labels": gold}
        else:
            values = similarity_values(outputs.view(-1), gold, [pair_ids], self.options)
        return weighted_terms(values, self.weights, self.options)


class FloatTripletLoss(TripletLoss):
    """sentence-transformers' triplet loss with distances in float32.

    Under bfloat16 the distances of near texts would be equal.
    """

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Compute the loss of anchors, positives and negatives, ``(rows, dim)`` each."""
        floats = [batch.float() for batch in embeddings]
        return super().compute_loss_from_embeddings(floats, labels)
