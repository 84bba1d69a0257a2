"""Trainer of sentence-transformers, assembled from the model, data and loss of a recipe."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from datasets import Dataset
from sentence_transformers import (
    CrossEncoder,
    CrossEncoderTrainer,
    CrossEncoderTrainingArguments,
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.model_card import BaseModelCardCallback
from sentence_transformers.sentence_transformer.losses import SoftmaxLoss
from torch import nn
from transformers import (
    EarlyStoppingCallback,
    PreTrainedModel,
    PrinterCallback,
    TrainerCallback,
    set_seed,
)

from condsim.data.nli_triplets import NLI_CLASSES
from condsim.errors import InputError
from condsim.model.builders import build_bi_encoder, build_cross_encoder, separator_of
from condsim.model.precision import TrainingPrecision, backbone_of, choose_training_precision
from condsim.model.tri_encoder import build_tri_encoder
from condsim.training.callbacks import CheckpointCallback, DevEvaluator, Model, ProgressCallback
from condsim.training.data import (
    DevData,
    PairBatchSampler,
    TrainingData,
    sample_rows,
    similarity_set,
    supervised_set,
    warn_of_cuts,
)
from condsim.training.export import open_backbone
from condsim.training.folder import CHECKPOINTS, HISTORY
from condsim.training.mixture import ITEM, SourceBatchSampler, SourceCollator, read_mixture
from condsim.training.objective_loss import (
    CrossEncoderLoss,
    FloatTripletLoss,
    MixedLoss,
    ObjectiveLoss,
    average_gradients,
)
from condsim.training.recipe import Recipe
from condsim.types import Task


@dataclass(frozen=True)
class TrainingRun:
    """A trainer, and the parts of it that are read during and after training."""

    trainer: SentenceTransformerTrainer | CrossEncoderTrainer
    model: Model
    loss: nn.Module
    checkpoints: CheckpointCallback
    precision: TrainingPrecision
    sources: Mapping[str, object]


def build_model(recipe: Recipe) -> Model:
    """Build the untrained encoder of a recipe; its new layers depend on the recipe's seed."""
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


def build_run(recipe: Recipe, train: TrainingData, dev: DevData, output: Path) -> TrainingRun:
    """Build everything that a run in the folder ``output`` needs; nothing is trained yet."""
    model = build_model(recipe)
    # A neutral example, or the cards of checkpoints would quote training rows.
    model.model_card_data.widget = [{"text": "A man throws a ball."}]
    backbone = backbone_of(model)
    _freeze(backbone, recipe)
    precision = _precision(backbone, recipe, output / HISTORY)
    feed = _feed(model, recipe, train)
    evaluator = DevEvaluator(dev, recipe)
    checkpoints = CheckpointCallback(feed.loss, steps=recipe.checkpoint_steps)
    callbacks: list[TrainerCallback] = [checkpoints, ProgressCallback()]
    if recipe.patience is not None:
        callbacks.append(EarlyStoppingCallback(recipe.patience))
    arguments = {
        **_arguments(recipe),
        "output_dir": str(output / CHECKPOINTS),
        "batch_sampler": feed.sampler,
        "metric_for_best_model": evaluator.metric,
        "bf16": precision.bfloat16,
    }
    common: dict[str, Any] = {
        "model": model,
        "train_dataset": feed.dataset,
        "loss": feed.loss,
        "evaluator": evaluator,
        "data_collator": feed.collator,
        "callbacks": callbacks,
    }
    trainer: SentenceTransformerTrainer | CrossEncoderTrainer
    if isinstance(model, SentenceTransformer):
        trainer = SentenceTransformerTrainer(
            args=SentenceTransformerTrainingArguments(**arguments), **common
        )
    else:
        trainer = CrossEncoderTrainer(args=CrossEncoderTrainingArguments(**arguments), **common)
    # They print every log line, and write cards that would copy training rows.
    for callback in (PrinterCallback, BaseModelCardCallback):
        trainer.remove_callback(callback)
    return TrainingRun(trainer, model, feed.loss, checkpoints, precision, feed.sources)


def _freeze(backbone: PreTrainedModel, recipe: Recipe) -> None:
    """Leave out of the training what the recipe names."""
    if recipe.freeze_layers:
        lists = [part for part in backbone.modules() if isinstance(part, nn.ModuleList)]
        layers = lists[0] if lists else nn.ModuleList()
        if recipe.freeze_layers >= len(layers):
            raise InputError(
                f"Recipe key 'freeze_layers' must be below the number of layers of "
                f"{recipe.backbone}, {len(layers)}; got {recipe.freeze_layers}."
            )
        backbone.requires_grad_(False)
        for layer in layers[recipe.freeze_layers :]:
            layer.requires_grad_(True)
    parts = {"embeddings": backbone.get_input_embeddings(), "encoder": backbone}
    for name in recipe.freeze:
        parts[name].requires_grad_(False)


def _precision(backbone: PreTrainedModel, recipe: Recipe, history: Path) -> TrainingPrecision:
    """Choose number format and attention, the same in all processes; a resumed run keeps them."""
    process = PartialState()
    values: list[dict[str, Any]] = [{}]
    if process.is_main_process:
        try:
            values = [json.loads(history.read_text(encoding="utf-8"))["precision"]]
        except (OSError, ValueError, KeyError):
            values = [choose_training_precision(backbone, recipe.precision).model_dump()]
    if process.num_processes > 1:
        broadcast_object_list(values)
    precision = TrainingPrecision(**values[0])
    backbone.set_attn_implementation(precision.attention)
    return precision


@dataclass(frozen=True)
class _Feed:
    """Data and loss of a trainer."""

    dataset: Dataset
    loss: nn.Module
    sampler: Callable[..., Any]
    collator: SourceCollator | None = None
    sources: Mapping[str, object] = field(default_factory=dict)


def _feed(model: Model, recipe: Recipe, train: TrainingData) -> _Feed:
    """Turn the data into the form of the trainer."""
    rows = sample_rows(train, recipe.train_rows)
    if isinstance(model, SentenceTransformer) and isinstance(train, Task) and recipe.sources:
        return _mixed_feed(model, recipe, train)
    if not isinstance(rows, Task):
        training_set = supervised_set(rows)
    else:
        is_cross_encoder = isinstance(model, CrossEncoder)
        separator = separator_of(model.tokenizer, recipe.layout) if is_cross_encoder else None
        training_set = similarity_set(rows, recipe, separator=separator)
    dataset = training_set.dataset
    columns = [dataset[name] for name in dataset.column_names if name != "label"]
    _check_texts([*chain(*columns)], model, recipe)
    return _Feed(dataset, _loss(model, recipe), partial(PairBatchSampler, training_set))


def _check_texts(inputs: Sequence[Any], model: Model, recipe: Recipe) -> None:
    """Check that inputs have the condition that a tri-encoder needs, and warn of long ones."""
    is_tri_encoder = recipe.encoder == "tri-encoder"
    if is_tri_encoder and any(isinstance(text, str) for text in inputs):
        raise InputError("A tri-encoder needs a condition in every row of every file.")
    # A tri-encoder reads condition and sentence separately.
    texts = chain.from_iterable(inputs) if is_tri_encoder else inputs
    warn_of_cuts(texts, model.tokenizer, recipe.max_seq_length)


def _mixed_feed(model: SentenceTransformer, recipe: Recipe, train: Task) -> _Feed:
    """Join the sources in one data set of item numbers, which the collator looks up."""
    mixture = read_mixture(
        train,
        recipe.mixed_sources,
        order=recipe.order,
        batch_size=recipe.batch_size,
        dimension=model.get_embedding_dimension(),
    )
    _check_texts(mixture.inputs, model, recipe)
    batches = batches_per_epoch(recipe, inputs=int(mixture.units["train"].costs.sum()))
    return _Feed(
        dataset=Dataset.from_dict({ITEM: range(len(mixture))}),
        loss=MixedLoss(model, mixture.parts, recipe.loss_options),
        sampler=partial(SourceBatchSampler, mixture, batches=batches),
        collator=SourceCollator(mixture, model.preprocess, device=model.device.type),
        sources=mixture.facts,
    )


def batches_per_epoch(recipe: Recipe, *, inputs: int) -> int:
    """Batches of an epoch over all processes; ``train`` has so many distinct inputs."""
    if recipe.steps is not None:
        steps = math.ceil(recipe.steps / recipe.epochs)
        return steps * recipe.gradient_accumulation * int(PartialState().num_processes)
    shares = sum(source.share for source in recipe.mixed_sources.values())
    inputs_per_batch = recipe.batch_size * recipe.train_share / shares
    return max(1, round(inputs / inputs_per_batch))


def _loss(model: Model, recipe: Recipe) -> nn.Module:
    if not isinstance(model, SentenceTransformer):
        return CrossEncoderLoss(model, recipe.objective, recipe.loss_options)
    if recipe.train_kind == "classes":
        # The classifier belongs to the loss: it is trained and stored in checkpoints.
        loss = SoftmaxLoss(model, model.get_embedding_dimension() or 0, num_labels=len(NLI_CLASSES))
        average_gradients(loss.classifier)
        return loss
    if recipe.train_kind == "triplets":
        return FloatTripletLoss(model, triplet_margin=recipe.margin)
    return ObjectiveLoss(model, recipe.objective, recipe.loss_options)


def _arguments(recipe: Recipe) -> dict[str, Any]:
    """Arguments of the trainer that follow from the recipe alone."""
    constant = recipe.schedule == "constant"
    return {
        "num_train_epochs": recipe.epochs,
        "max_steps": recipe.steps or -1,
        "per_device_train_batch_size": recipe.batch_size,
        "gradient_accumulation_steps": recipe.gradient_accumulation,
        "learning_rate": recipe.learning_rate,
        "lr_scheduler_type": "constant_with_warmup" if constant else recipe.schedule,
        "warmup_steps": recipe.warmup,
        "weight_decay": recipe.weight_decay,
        # At 0 the library clips nothing.
        "max_grad_norm": recipe.max_grad_norm or 0.0,
        "optim": "adamw_torch_fused",
        # Else processes would wait where one has more sub-batches than another.
        "ddp_broadcast_buffers": False,
        "use_cpu": not torch.accelerator.is_available(),
        "seed": recipe.seed,
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "save_total_limit": 2,
        "load_best_model_at_end": recipe.keep == "best",
        "greater_is_better": True,
        # A resumed run continues to count the epochs of `EarlyStoppingCallback`.
        "restore_callback_states_from_checkpoint": recipe.patience is not None,
        "logging_steps": 10,
        "disable_tqdm": True,
        "report_to": "none",
    }
