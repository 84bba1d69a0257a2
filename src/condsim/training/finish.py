"""What every model folder gets before it is done: calibration, settings, evaluation, card."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sentence_transformers import SentenceTransformer

from condsim.evaluation.evaluate import evaluate
from condsim.evaluation.report import Report
from condsim.files import replacing
from condsim.scorers.baselines import ConditionOnlyScorer
from condsim.scorers.calibration import fit_calibration
from condsim.scorers.load import load_scorer
from condsim.scorers.settings import Settings
from condsim.tasks import Triplets
from condsim.training.card import model_card
from condsim.training.data import DevData, TrainingData, dev_pairs
from condsim.training.evaluator import Model, scorer_of
from condsim.training.half import store_as_float16
from condsim.training.inputs import MaskedScorer
from condsim.training.recipe import Recipe
from condsim.types import Task

__all__ = ["write_model"]


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
    """Writes a trained model with its settings and card, and measures what was written.

    Args:
        model: The trained model.
        recipe: The recipe it came from.
        output: The folder to write to.
        train: The training data; the condition-only baseline is fitted on it.
        dev: The data to calibrate and measure on; triplets as pairs of label 1 and 0.
        runs: How many runs the weights are the mean of.
        base_model: Hub name of what training began from; the recipe's backbone if None.
        float16: Whether the weights are stored in half the bytes (and used as float32 still).

    Returns:
        The evaluation on ``dev``, of the model as loaded from the folder.
    """
    pairs = dev_pairs(dev)
    rows = pairs.labelled()
    raw = scorer_of(model, recipe).score(
        rows.sentences1, rows.sentences2, rows.conditions, scale="raw"
    )
    dimension = None
    if isinstance(model, SentenceTransformer):
        dimension = model.get_embedding_dimension()
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
            **(
                {"dev_accuracy": round(100 * dev.accuracy(raw), 1)}
                if isinstance(dev, Triplets)
                else {}
            ),
        },
    )
    settings.save(output)
    report = evaluate(
        MaskedScorer(load_scorer(str(output)), recipe.inputs),
        pairs,
        baselines=() if pairs.conditions else ("word-overlap",),
        condition_only=ConditionOnlyScorer().fit_task(train)
        if isinstance(train, Task) and train.conditions
        else None,
    )
    spearman = round(report.model.metrics["spearman"].value, 1)
    replace(settings, facts={**settings.facts, "dev_spearman_float32": spearman}).save(output)
    card = model_card(recipe, report, train=train, runs=runs, base_model=base_model)
    with replacing(output / "README.md") as partial:
        partial.write_text(card, encoding="utf-8")
    return report
