"""Writes a trained model into its folder: weights, calibration, settings, evaluation, card."""

# Runs that differ in seed or settings but start from the same pre-trained weights mostly end in one
# basin; the mean of their weights is then often better than each, at the cost of one model
# (Wortsman et al., 2022, "Model soups", uniform soup). A share of the pre-trained weights in that
# mean gives back some of what training forgot (Wortsman et al., 2022, "Robust fine-tuning of
# zero-shot models"). Neither is from the papers condsim implements.

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
import yaml
from sentence_transformers import SentenceTransformer

from condsim.data.triplets import Triplets
from condsim.errors import InputError
from condsim.evaluation.evaluate import evaluate, score_rows
from condsim.evaluation.metrics import triplet_wins
from condsim.evaluation.report import Report
from condsim.evaluation.tables import to_markdown
from condsim.io import write_text
from condsim.model.backbone import without_progress_bars
from condsim.model.baselines import ConditionOnlyScorer
from condsim.model.calibration import fit_calibration
from condsim.model.conditions import card_texts, cross_encoder_inputs
from condsim.model.settings import Settings
from condsim.model.torch import EncoderScorer
from condsim.model.trained import load_trained
from condsim.training.data import DevData, TrainingData, dev_pairs, load_data, used_rows
from condsim.training.folder import HISTORY, RECIPE, REPORT, prepare_output
from condsim.training.recipe import Recipe, load_recipe
from condsim.training.trainer import Model, build_model, scorer_of
from condsim.types import Scorer, Task


def model_card(
    recipe: Recipe,
    report: Report,
    *,
    train: TrainingData,
    runs: int,
    base_model: str,
) -> str:
    """Writes a model card in Markdown."""
    # No row of the training data is quoted: C-STS asks that its rows not be published.
    rows = len(used_rows(train, recipe))
    first, second = card_texts(recipe.order)
    inputs = f"pairs of texts ({first}; {second}); the similarity is the cosine"
    if recipe.encoder == "cross-encoder":
        [given] = cross_encoder_inputs(
            *(["sentence1"], ["sentence2"], [first if second == "sentence" else second]),
            separator=" SEP ",
            order=recipe.order,
            layout=recipe.layout,
            inputs=recipe.inputs,
        )
        inputs = f"`{given}`; the similarity is the output"
    average = ""
    if runs > 1:
        average = f"The weights are the mean of {runs} runs; `training.json` has their recipes. "
    others = ""
    if recipe.sources:
        others = f", mixed with: {', '.join(recipe.sources)}"
    warning = "They are of the raw similarity, before the calibration."
    if recipe.keep == "best":
        warning += " The epoch was chosen by them, so they flatter the model a little."
    if report.task_revision == train.revision:
        warning = "**The model was trained on these rows**, so the figures do not measure it."
    front = yaml.safe_dump(
        {
            **({"license": recipe.license} if recipe.license else {}),
            "library_name": "sentence-transformers",
            "pipeline_tag": "sentence-similarity",
            "base_model": base_model,
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
        warning=warning,
        report=report,
        table=to_markdown(report),
        keys=yaml.safe_dump(recipe.model_dump(), sort_keys=False),
    )


def floor_of(train: TrainingData, task: Task) -> tuple[Sequence[str], Scorer | None]:
    """Baselines of a trained model: word overlap, or the condition alone as ``train`` has it."""
    alone = None
    if isinstance(train, Task) and train.conditions:
        alone = ConditionOnlyScorer().fit_task(train)
    return () if task.conditions else ("word-overlap",), alone


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
        accuracy["dev_accuracy"] = round(100 * float(triplet_wins(raw).mean()), 1)
    if float16:
        model.half()
    model.save_pretrained(str(output), create_model_card=False)
    if float16:
        # transformers takes the number format from here, so whoever loads the model computes in
        # float32, with weights rounded to 11 significant bits.
        config = output / "config.json"
        content = json.loads(config.read_text(encoding="utf-8"))
        write_text(config, json.dumps({**content, "dtype": "float32"}, indent=2) + "\n")
    base_model = base_model or recipe.backbone
    settings = Settings(
        kind=recipe.encoder,
        name=recipe.name,
        order=recipe.order,
        calibration=fit_calibration(raw, rows.gold),
        dimension=dimension,
        max_seq_length=recipe.max_seq_length,
        layout=recipe.layout,
        inputs=recipe.inputs,
        facts={
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "base_model": base_model,
            "training_data": f"{train.name} {train.revision}",
            "dev_data": f"{dev.name} {dev.revision}",
            **({"license": recipe.license} if recipe.license else {}),
            **accuracy,
        },
    )
    settings.save(output)
    written = score_rows(load_trained(str(output)), rows)
    # Not the calibrated scores: those are fitted to these very rows.
    values = raw if written.raw is None else written.raw
    baselines, alone = floor_of(train, pairs)
    report = evaluate(
        replace(written, values=values), pairs, baselines=baselines, condition_only=alone
    )
    if dev.revision != train.revision:
        spearman = round(report.model.metrics["spearman"].value, 1)
        replace(settings, facts={**settings.facts, "dev_spearman_float32": spearman}).save(output)
    card = model_card(recipe, report, train=train, runs=runs, base_model=base_model)
    write_text(output / "README.md", card)
    return report


def average_weights(models: Sequence[Model], shares: Sequence[float] | None = None) -> None:
    """Gives the first model the mean of the weights of all.

    Args:
        models: Two models or more of one architecture; the first is changed.
        shares: What part of the mean each has; they add up to 1. Equal if None.

    Raises:
        InputError: If there are fewer than two, or their weights differ in name or shape.
    """
    if len(models) < 2:
        raise InputError(f"An average needs two models or more. Got {len(models)}.")
    states = [model.state_dict() for model in models]
    shapes = [{name: tuple(value.shape) for name, value in state.items()} for state in states]
    for number, shape in enumerate(shapes[1:], start=2):
        if shape != shapes[0]:
            names = sorted(set(shapes[0].items()) ^ set(shape.items()))
            raise InputError(
                f"Only models of one architecture can be averaged. Model {number} differs from the "
                f"first in {names[0][0]!r}."
            )
    shares = shares or [1 / len(models)] * len(models)
    with torch.no_grad():
        for name, value in states[0].items():
            if value.is_floating_point():
                parts = [
                    share * state[name].double()
                    for share, state in zip(shares, states, strict=True)
                ]
                value.copy_(torch.stack(parts).sum(dim=0))


@without_progress_bars()
def average_models(
    runs: Sequence[Path],
    output: Path,
    *,
    name: str | None = None,
    base_model: str | None = None,
    pretrained: str | None = None,
    pretrained_share: float = 0.1,
    float16: bool = False,
    folds_of: Path | str | None = None,
) -> Report:
    """Averages finished runs into a new model folder, calibrated and measured on their dev file.

    Args:
        runs: Output folders of ``condsim train``, two or more; one is enough with ``pretrained``.
        output: A folder that is new or empty.
        name: Name of the model; that of the first run if None.
        base_model: What the card names as the model that training began from; the backbone of the
            runs if None, which may be a run itself.
        pretrained: Folder or Hub name of the model that all training began from, for it to have a
            share in the mean.
        pretrained_share: That share, above 0 and below 1; the runs share the rest equally.
        float16: Whether the weights are stored in half the bytes (and used as float32 still).
        folds_of: The file, in place of their own, of which each run learnt all folds but one.

    Raises:
        InputError: If a folder is no finished run, the runs differ in what they would score, or the
            share is out of its range.
    """
    if not 0 < pretrained_share < 1:
        raise InputError(f"The pre-trained share lies between 0 and 1. Got {pretrained_share:g}.")
    rows = {} if folds_of is None else {"train": str(folds_of), "dev": str(folds_of)}
    recipes = [_finished(run).replaced(**rows) for run in runs]
    recipe = recipes[0].replaced(name=name or recipes[0].name)
    for run, other in zip(runs, recipes, strict=True):
        for key in ("encoder", "backbone", "order", "pooling", "fusion", "rank", "dev"):
            if getattr(other, key) != getattr(recipe, key):
                raise InputError(
                    f"{run} cannot be averaged with {runs[0]}: their recipes differ in '{key}'."
                )
    train, dev = load_data(recipe)
    models = [_model(run) for run in runs]
    shares = [1 / len(runs)] * len(runs)
    if pretrained is not None:
        if recipe.encoder != "bi-encoder" or recipe.transform:
            raise InputError(
                "A pre-trained model has a share only in bi-encoders without 'transform': others "
                "have layers that it lacks."
            )
        models.append(build_model(recipe.replaced(backbone=pretrained)))
        shares = [*(share * (1 - pretrained_share) for share in shares), pretrained_share]
    average_weights(models, shares)
    prepare_output(output, recipe, resume=False)
    report = write_model(
        models[0],
        recipe,
        output,
        train=train,
        dev=dev,
        runs=len(runs),
        base_model=base_model,
        float16=float16,
    )
    members = {str(run): member.model_dump() for run, member in zip(runs, recipes, strict=True)}
    history: dict[str, object] = {"average_of": members}
    if pretrained is not None:
        history["pretrained"] = {"model": pretrained, "share": pretrained_share}
    write_text(output / HISTORY, json.dumps(history, indent=2))
    report.to_json(output / REPORT)
    return report


def _finished(run: Path) -> Recipe:
    if not (run / REPORT).is_file():
        raise InputError(f"{run} is no finished run of 'condsim train' (there is no {REPORT}).")
    return load_recipe(run / RECIPE)


def _model(run: Path) -> Model:
    scorer = load_trained(str(run), device="cpu")
    if not isinstance(scorer, EncoderScorer):
        raise InputError(f"{run} is no bi- or tri-encoder; only those can be averaged.")
    return scorer.model
