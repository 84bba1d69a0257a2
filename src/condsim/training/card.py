"""Model folder of a run: weights, calibration, settings, evaluation and card."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml
from sentence_transformers import SentenceTransformer

from condsim.data.nli_triplets import Triplets
from condsim.evaluation.evaluate import evaluate, score_rows
from condsim.evaluation.metrics import triplet_wins
from condsim.evaluation.report import Report, to_markdown
from condsim.io import write_text
from condsim.model.baselines import ConditionOnlyScorer
from condsim.model.calibration import fit_calibration
from condsim.model.inputs import card_texts, cross_encoder_inputs
from condsim.model.settings import ModelSettings
from condsim.model.torch import load_trained
from condsim.training.callbacks import Model, uncalibrated_scorer
from condsim.training.data import DevData, TrainingData, dev_pairs, sample_rows
from condsim.training.recipe import Recipe
from condsim.types import Scorer, Task


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
    """Write a trained model with its settings and card, and measure the model that was written."""
    pairs = dev_pairs(dev)
    rows = pairs.labeled()
    scorer = uncalibrated_scorer(model, recipe, name=recipe.name)
    raw = scorer.score(rows.sentences1, rows.sentences2, rows.conditions, scale="raw")
    _save_weights(model, output, float16=float16)
    base_model = base_model or recipe.backbone
    facts: dict[str, str | int | float] = {
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "base_model": base_model,
        "training_data": f"{train.name} {train.revision}",
        "dev_data": f"{dev.name} {dev.revision}",
    }
    if recipe.license:
        facts["license"] = recipe.license
    if isinstance(dev, Triplets):
        facts["dev_accuracy"] = round(100 * float(triplet_wins(raw).mean()), 1)
    dimension = model.get_embedding_dimension() if isinstance(model, SentenceTransformer) else None
    settings = ModelSettings(
        kind=recipe.encoder,
        name=recipe.name,
        order=recipe.order,
        calibration=fit_calibration(raw, rows.gold),
        dimension=dimension,
        max_seq_length=recipe.max_seq_length,
        layout=recipe.layout,
        inputs=recipe.inputs,
        facts=facts,
    )
    settings.save(output)
    written = score_rows(load_trained(str(output)), rows)
    # Not the calibrated scores: the calibration is fitted to these very rows.
    values = raw if written.raw is None else written.raw
    baselines, condition_only = baselines_for(train, pairs)
    report = evaluate(
        replace(written, values=values), pairs, baselines=baselines, condition_only=condition_only
    )
    if dev.revision != train.revision:
        facts["dev_spearman_float32"] = round(report.model.metrics["spearman"].value, 1)
        replace(settings, facts=facts).save(output)
    card = model_card(recipe, report, train=train, runs=runs, base_model=base_model)
    write_text(output / "README.md", card)
    return report


def _save_weights(model: Model, output: Path, *, float16: bool) -> None:
    if float16:
        model.half()
    model.save_pretrained(str(output), create_model_card=False)
    if float16:
        # transformers reads the number format from here: the model computes in float32, with
        # weights rounded to 11 significant bits.
        path = output / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        write_text(path, json.dumps({**config, "dtype": "float32"}, indent=2) + "\n")


def baselines_for(train: TrainingData, task: Task) -> tuple[Sequence[str], Scorer | None]:
    """Baselines of a trained model: word overlap, or the condition alone, fitted to ``train``."""
    condition_only = None
    if isinstance(train, Task) and train.conditions:
        condition_only = ConditionOnlyScorer().fit_task(train)
    return () if task.conditions else ("word-overlap",), condition_only


def model_card(
    recipe: Recipe, report: Report, *, train: TrainingData, runs: int, base_model: str
) -> str:
    """Write a model card in Markdown.

    It quotes no row of the training data: C-STS asks that its rows not be published.
    """
    first, second = card_texts(recipe.order)
    inputs = f"pairs of texts ({first}; {second}); the similarity is the cosine"
    if recipe.encoder == "cross-encoder":
        [example] = cross_encoder_inputs(
            ["sentence1"],
            ["sentence2"],
            [first if second == "sentence" else second],
            separator=" SEP ",
            order=recipe.order,
            layout=recipe.layout,
            inputs=recipe.inputs,
        )
        inputs = f"`{example}`; the similarity is the output"
    average = ""
    if runs > 1:
        average = f"The weights are the mean of {runs} runs; `training.json` has their recipes. "
    warning = "They are of the raw similarity, before the calibration."
    if recipe.keep == "best":
        warning += " The epoch was chosen by them, so they flatter the model a little."
    if report.task_revision == train.revision:
        warning = "**The model was trained on these rows**, so the figures do not measure it."
    front = {
        **({"license": recipe.license} if recipe.license else {}),
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "base_model": base_model,
        "tags": ["condsim", "conditional-similarity", "c-sts", recipe.encoder],
    }
    template = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
    return template.format(
        front=yaml.safe_dump(front, sort_keys=False),
        recipe=recipe,
        inputs=inputs,
        average=average,
        train=train,
        rows=len(sample_rows(train, recipe.train_rows)),
        sources=f", mixed with: {', '.join(recipe.sources)}" if recipe.sources else "",
        warning=warning,
        report=report,
        table=to_markdown(report),
        keys=yaml.safe_dump(recipe.model_dump(), sort_keys=False),
    )
