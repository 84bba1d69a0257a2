"""Assembles a sentence-transformers trainer from a recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from datasets import Dataset
from sentence_transformers import (
    CrossEncoder,
    CrossEncoderTrainer,
    CrossEncoderTrainingArguments,
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.evaluation.evaluator import BaseEvaluator
from sentence_transformers.base.model_card import BaseModelCardCallback
from torch import nn
from transformers import PrinterCallback, TrainerCallback, set_seed

from condsim.data.nli import NLI_CLASSES
from condsim.data.statistics import pair_rows
from condsim.data.triplets import Triplets
from condsim.errors import InputError
from condsim.evaluation.correlation import spearman
from condsim.evaluation.metrics import pair_accuracy, triplet_wins
from condsim.model.builders import build_bi_encoder, build_cross_encoder, separator_of
from condsim.model.torch import CrossEncoderScorer, EncoderScorer
from condsim.model.tri_encoder import build_tri_encoder
from condsim.training.arithmetic import Arithmetic, backbone_of, choose_arithmetic
from condsim.training.batches import ITEM, SourceCollator, batch_sampler, source_sampler
from condsim.training.callbacks import (
    LOSS_STATE,
    CheckpointCallback,
    InterruptCallback,
    LossStateCallback,
    PatienceCallback,
    ProgressCallback,
    load_loss_state,
    loss_state,
)
from condsim.training.data import (
    DevData,
    TrainingData,
    dev_pairs,
    training_set,
    used_rows,
    warn_of_cuts,
)
from condsim.training.folder import CHECKPOINTS, last_checkpoint
from condsim.training.losses.base import LossOptions
from condsim.training.losses.similarity import SoftmaxLoss, TripletLoss
from condsim.training.losses.weighted import CrossEncoderSimilarityLoss, MixedLoss, WeightedSumLoss
from condsim.training.mixture import read_mixture
from condsim.training.recipe import Recipe
from condsim.training.restore import open_backbone
from condsim.types import Task

Model = SentenceTransformer | CrossEncoder


def scorer_of(model: Model, recipe: Recipe) -> EncoderScorer | CrossEncoderScorer:
    """Makes a scorer of a model in memory; it has no calibration."""
    if isinstance(model, SentenceTransformer):
        return EncoderScorer(model, name=recipe.name, order=recipe.order)
    layout, inputs = recipe.layout, recipe.inputs
    return CrossEncoderScorer(
        model, name=recipe.name, order=recipe.order, layout=layout, inputs=inputs
    )


class DevEvaluator(BaseEvaluator):
    """Spearman on the labelled rows of the dev file, as a sentence-transformers evaluator."""

    # Of triplets it is the Spearman of their pairs, and the epoch is chosen by their accuracy.

    def __init__(self, dev: DevData, recipe: Recipe) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._triplets = dev if isinstance(dev, Triplets) else None
        # the figure that the epoch is chosen by
        self.metric = self.primary_metric = "accuracy" if self._triplets else recipe.chosen_by
        self._recipe = recipe
        self._dev = dev_pairs(dev).labelled()
        self._pairing = pair_rows(self._dev) if self.metric == "both" else None

    def __call__(
        self,
        model: Model,  # type: ignore[override]
        output_path: str | None = None,
        epoch: int = -1,
        steps: int = -1,
    ) -> dict[str, float]:
        """Scores the rows."""
        dev = self._dev
        scores = scorer_of(model, self._recipe).score(
            dev.sentences1, dev.sentences2, dev.conditions, scale="raw"
        )
        order = float(np.nan_to_num(spearman(scores, dev.gold)))
        figures = {"spearman": order}
        if self._pairing is not None:
            right = pair_accuracy(scores, high=self._pairing.high, low=self._pairing.low)
            figures["both"] = order if np.isnan(right) else (order + right) / 2
        if self._triplets:
            figures["accuracy"] = float(triplet_wins(scores).mean())
        return figures


@dataclass(frozen=True)
class Run:
    """A trainer and what has to be asked of it after training."""

    trainer: SentenceTransformerTrainer | CrossEncoderTrainer
    model: Model
    loss: nn.Module
    interrupt: InterruptCallback
    arithmetic: Arithmetic
    sources: Mapping[str, object]

    def last_checkpoint(self, output: Path) -> Path | None:
        """Finds what the run in a folder can be resumed from, and restores the loss's weights."""
        also = LOSS_STATE if loss_state(self.loss) else None
        checkpoint = last_checkpoint(output, also=also)
        if checkpoint is not None:
            load_loss_state(self.loss, checkpoint)
        return checkpoint


def build_model(recipe: Recipe) -> Model:
    """Builds the untrained encoder of a recipe; its new layers depend on the recipe's seed."""
    set_seed(recipe.seed)
    builders: dict[str, Callable[..., Model]] = {
        "bi-encoder": build_bi_encoder,
        "tri-encoder": partial(
            build_tri_encoder, fusion=recipe.fusion, rank=recipe.rank, order=recipe.order
        ),
        "cross-encoder": partial(
            build_cross_encoder, outputs=5 if "classification" in recipe.terms else 1
        ),
    }
    with open_backbone(recipe.backbone) as backbone:
        return builders[recipe.encoder](
            backbone,
            pooling=recipe.pooling,
            transform=recipe.transform,
            dropout=recipe.dropout,
            max_seq_length=recipe.max_seq_length,
        )


def build_run(recipe: Recipe, train: TrainingData, dev: DevData, output: Path) -> Run:
    """Builds everything a run needs; nothing is trained yet.

    Args:
        dev: The data the best epoch is chosen on.

    Raises:
        InputError: If the data or the backbone do not fit the recipe.
    """
    model = build_model(recipe)
    # An example of ours, or the cards of checkpoints would quote training rows.
    model.model_card_data.widget = [{"text": "A man throws a ball."}]
    _freeze(model, recipe)
    arithmetic = choose_arithmetic(model, recipe, output)
    feed = _feed(model, recipe, train)
    evaluator = DevEvaluator(dev, recipe)
    interrupt = InterruptCallback()
    callbacks: list[TrainerCallback] = [interrupt, ProgressCallback()]
    if recipe.patience is not None:
        callbacks.append(PatienceCallback(recipe.patience))
    if recipe.checkpoint_steps:
        callbacks.append(CheckpointCallback(recipe.checkpoint_steps))
    loss = feed.loss
    if loss_state(loss):
        callbacks.append(LossStateCallback(loss))
    arguments = _arguments(recipe, output, feed.sampler, model, metric=evaluator.metric)
    arguments["bf16"] = arithmetic.bfloat16
    common: dict[str, Any] = {
        "model": model,
        "train_dataset": feed.dataset,
        "loss": loss,
        "evaluator": evaluator,
        "data_collator": feed.collator,
        "callbacks": callbacks,
    }
    trainer: SentenceTransformerTrainer | CrossEncoderTrainer
    if isinstance(model, SentenceTransformer):
        given = SentenceTransformerTrainingArguments(**arguments)
        trainer = SentenceTransformerTrainer(args=given, **common)
    else:
        trainer = CrossEncoderTrainer(args=CrossEncoderTrainingArguments(**arguments), **common)
    # They print every log line, and write cards that would copy training rows.
    for callback in (PrinterCallback, BaseModelCardCallback):
        trainer.remove_callback(callback)
    return Run(
        trainer=trainer,
        model=model,
        loss=loss,
        interrupt=interrupt,
        arithmetic=arithmetic,
        sources=feed.sources,
    )


@dataclass(frozen=True)
class _Feed:
    """What a trainer is given to train on."""

    dataset: Dataset
    loss: nn.Module
    sampler: Callable[..., Any]
    collator: SourceCollator | None = None
    sources: Mapping[str, object] = field(default_factory=dict)


def _feed(model: Model, recipe: Recipe, train: TrainingData) -> _Feed:
    """Turns the data into what the trainer is given."""
    rows = used_rows(train, recipe)
    if recipe.sources and isinstance(model, SentenceTransformer) and isinstance(train, Task):
        return _mixed_feed(model, recipe, train)
    separator = ""
    if isinstance(model, CrossEncoder):
        separator = separator_of(model.tokenizer, recipe.layout)
    given = training_set(rows, recipe, separator=separator)
    warn_of_cuts(_inputs(given.dataset, recipe), model.tokenizer, recipe.max_seq_length)
    return _Feed(
        dataset=given.dataset,
        loss=_loss(model, recipe),
        sampler=partial(batch_sampler, given, length_grouped=recipe.length_grouped),
    )


def _inputs(dataset: Dataset, recipe: Recipe) -> Iterable[str | Sequence[str]]:
    """What the encoder is given of each row: texts, or pairs of texts that it reads as one."""
    columns = [dataset[name] for name in dataset.column_names if name != "label"]
    cells = chain(*columns)
    return chain.from_iterable(cells) if recipe.encoder == "tri-encoder" else cells


def _mixed_feed(model: SentenceTransformer, recipe: Recipe, train: Task) -> _Feed:
    """The same of a recipe with sources: one data set of numbers, which the collator looks up."""
    mixture = read_mixture(train, recipe, dimension=model.get_embedding_dimension())
    warn_of_cuts(mixture.inputs, model.tokenizer, recipe.max_seq_length)
    processes = PartialState().num_processes
    return _Feed(
        dataset=Dataset.from_dict({ITEM: range(len(mixture))}),
        loss=MixedLoss(model, mixture.parts, _options(recipe)),
        sampler=partial(source_sampler, mixture, recipe, processes=processes),
        collator=SourceCollator(mixture, model.preprocess, device=model.device.type),
        sources=mixture.facts,
    )


def _freeze(model: Model, recipe: Recipe) -> None:
    """Keeps the backbone or its word embeddings as they are, if the recipe says so."""
    backbone = backbone_of(model)
    parts = {"embeddings": backbone.get_input_embeddings(), "encoder": backbone}
    for name in recipe.freeze:
        parts[name].requires_grad_(False)


def _loss(model: Model, recipe: Recipe) -> nn.Module:
    if not isinstance(model, SentenceTransformer):
        return CrossEncoderSimilarityLoss(model, recipe.objective, _options(recipe))
    if recipe.data_objective == "softmax":
        return SoftmaxLoss(model, classes=len(NLI_CLASSES))
    if recipe.data_objective == "triplet":
        return TripletLoss(model, margin=recipe.margin)
    return WeightedSumLoss(model, recipe.objective, _options(recipe))


def _options(recipe: Recipe) -> LossOptions:
    return LossOptions(**{one: getattr(recipe, one) for one in LossOptions.model_fields})


def _arguments(
    recipe: Recipe, output: Path, sampler: Callable[..., Any], model: Model, *, metric: str
) -> dict[str, Any]:
    """Arguments of the trainer; AdamW is torch's fused one where the device has it."""
    return {
        "output_dir": str(output / CHECKPOINTS),
        "num_train_epochs": recipe.epochs,
        "max_steps": recipe.steps or -1,
        "per_device_train_batch_size": recipe.batch_size,
        "gradient_accumulation_steps": recipe.gradient_accumulation,
        "learning_rate": recipe.learning_rate,
        "learning_rate_mapping": _layer_rates(recipe, model),
        "lr_scheduler_type": recipe.schedule
        if recipe.schedule != "constant"
        else "constant_with_warmup",
        "warmup_steps": recipe.warmup,
        "weight_decay": recipe.weight_decay,
        "max_grad_norm": recipe.max_grad_norm or 0.0,  # at 0 the library clips nothing
        "optim": "adamw_torch_fused",
        "ddp_broadcast_buffers": False,  # or processes wait where one has more sub-batches
        "use_cpu": not torch.accelerator.is_available(),
        "batch_sampler": sampler,
        "seed": recipe.seed,
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "save_total_limit": 2,
        "load_best_model_at_end": recipe.keep == "best",
        "metric_for_best_model": metric,
        "greater_is_better": True,
        "logging_steps": 10,
        "disable_tqdm": True,
        "report_to": "none",
    }


def _layer_rates(recipe: Recipe, model: Model) -> dict[str, float]:
    """Learning rates that fall by ``layer_decay`` with each layer further from the output."""
    if recipe.layer_decay == 1:
        return {}
    layers = getattr(backbone_of(model).config, "num_hidden_layers", 0)
    patterns = [r"\.embeddings\."] + [rf"\.layers?\.{index}\." for index in range(layers)]
    if not layers or not any(".embeddings." in name for name, _ in model.named_parameters()):
        raise InputError(
            f"'layer_decay' does not know the layers of {recipe.backbone}; set it to 1."
        )
    depth = len(patterns)
    return {
        pattern: recipe.learning_rate * recipe.layer_decay ** (depth - 1 - index)
        for index, pattern in enumerate(patterns)
    }
