"""Writes a trained model into its folder: weights, calibration, settings, evaluation, card."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import torch
import yaml
from safetensors import safe_open
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer

from condsim.evaluation import Report, evaluate, to_markdown
from condsim.files import replacing, write_text
from condsim.scorers import ConditionOnlyScorer, Settings, fit_calibration, load_trained
from condsim.tasks import Triplets
from condsim.training.data import DevData, MaskedScorer, TrainingData, dev_pairs, used_rows
from condsim.training.recipe import Recipe
from condsim.training.trainer import Model, scorer_of
from condsim.types import Task


def store_as_float16(folder: Path) -> None:
    """Rewrites the weights of a model folder in float16 and notes that float32 is to be used.

    transformers takes the number format from ``config.json``, so whoever loads it computes
    in float32, with weights rounded to 11 significant bits.
    """
    for path in sorted(folder.rglob("*.safetensors")):
        with safe_open(path, framework="pt") as weights:
            metadata = weights.metadata()
            tensors = {name: weights.get_tensor(name) for name in weights.keys()}
        halved = {
            name: value.to(torch.float16) if value.is_floating_point() else value
            for name, value in tensors.items()
        }
        with replacing(path) as partial:
            save_file(halved, partial, metadata=metadata)
    config = folder / "config.json"
    content = json.loads(config.read_text(encoding="utf-8"))
    content["dtype"] = "float32"
    write_text(config, json.dumps(content, indent=2) + "\n")


def model_card(
    recipe: Recipe,
    report: Report,
    *,
    train: TrainingData,
    runs: int = 1,
    base_model: str | None = None,
) -> str:
    """Writes a model card in Markdown.

    No row of the training data is quoted: C-STS asks that its rows not be published.
    """
    rows = len(used_rows(train, recipe))
    first, second = "condition", "sentence"
    if recipe.order == "sentence-first":
        first, second = second, first
    inputs = f"pairs of texts `[{first}, {second}]`; the similarity is the cosine"
    if recipe.encoder == "cross-encoder":
        inputs = "`[sentence1 SEP sentence2, condition]`; the similarity is the output"
    average = ""
    if runs > 1:
        average = f"The weights are the mean of {runs} runs; `training.json` has their recipes. "
    others = ""
    if recipe.sources:
        others = f", mixed with: {', '.join(recipe.sources)}"
    front = yaml.safe_dump(
        {
            **({"license": recipe.license} if recipe.license else {}),
            "library_name": "sentence-transformers",
            "pipeline_tag": "sentence-similarity",
            "base_model": base_model or recipe.backbone,
            "tags": ["condsim", "conditional-similarity", "c-sts", recipe.encoder],
        },
        sort_keys=False,
    )
    card = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
    return card.format(
        front=front,
        recipe=recipe,
        inputs=inputs,
        average=average,
        train=train,
        rows=rows,
        others=others,
        report=report,
        table=to_markdown(report),
        keys=yaml.safe_dump(recipe.model_dump(), sort_keys=False),
    )


def write_model(
    model: Model,
    recipe: Recipe,
    output: Path,
    *,
    train: TrainingData,
    dev: DevData,
    runs: int = 1,
    base_model: str | None = None,
    float16: bool = False,
) -> Report:
    """Writes a trained model with its settings and card, and measures what was written."""
    pairs = dev_pairs(dev)
    rows = pairs.labelled()
    raw = scorer_of(model, recipe).score(
        rows.sentences1, rows.sentences2, rows.conditions, scale="raw"
    )
    dimension = model.get_embedding_dimension() if isinstance(model, SentenceTransformer) else None
    accuracy = {}
    if isinstance(dev, Triplets):
        accuracy["dev_accuracy"] = round(100 * dev.accuracy(raw), 1)
    model.save_pretrained(str(output), create_model_card=False)
    if float16:
        store_as_float16(output)
    settings = Settings(
        kind=recipe.encoder,
        name=recipe.name,
        order=recipe.order,
        calibration=fit_calibration(raw, rows.gold),
        dimension=dimension,
        max_seq_length=recipe.max_seq_length,
        facts={
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "base_model": base_model or recipe.backbone,
            "training_data": f"{train.name} {train.revision}",
            "dev_data": f"{dev.name} {dev.revision}",
            **({"license": recipe.license} if recipe.license else {}),
            **accuracy,
        },
    )
    settings.save(output)
    report = evaluate(
        MaskedScorer(load_trained(str(output)), recipe.inputs),
        pairs,
        baselines=() if pairs.conditions else ("word-overlap",),
        condition_only=ConditionOnlyScorer().fit_task(train)
        if isinstance(train, Task) and train.conditions
        else None,
    )
    spearman = round(report.model.metrics["spearman"].value, 1)
    replace(settings, facts={**settings.facts, "dev_spearman_float32": spearman}).save(output)
    card = model_card(recipe, report, train=train, runs=runs, base_model=base_model)
    write_text(output / "README.md", card)
    return report
