"""Adaptation of a model to your criteria: plan, rehearsal, training, export, comparison."""

from __future__ import annotations

import logging
import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, cast

from condsim.errors import InputError, ModelError, requires_extra

with requires_extra("train"):
    import numpy as np
    from pydantic import Field
    from sentence_transformers import SentenceTransformer
    from sklearn.linear_model import Ridge

    from condsim.cache import record_inputs, sole_process
    from condsim.config import Settings
    from condsim.data.labels import LIKERT
    from condsim.data.load import load_task
    from condsim.evaluation.evaluate import evaluate
    from condsim.io import write_json, write_text
    from condsim.model.applicability import PROBE, ApplicabilityHead, head_features
    from condsim.model.builders import build_bi_encoder, without_progress_bars
    from condsim.model.calibration import fit_calibration
    from condsim.model.embedding import EmbeddingScorer
    from condsim.model.onnx import OnnxScorer
    from condsim.model.precision import (
        MEASURED_TOKENS,
        backbone_of,
        fastest_training,
        training_speeds,
        uses_bfloat16,
    )
    from condsim.model.settings import (
        FILE_NAME,
        MODEL_FILE,
        Fact,
        ModelSettings,
        model_folder,
        revision_of,
    )
    from condsim.model.torch import EncoderScorer, kind_of, load_trained
    from condsim.paths import sha256_of
    from condsim.training.adapt_figures import FIGURES, Adaptation
    from condsim.training.adapt_rows import (
        LabeledPair,
        Pairs,
        load_rehearsal,
        read_labeled,
        split_labeled,
        write_labeled,
    )
    from condsim.training.callbacks import FirstEpochCallback
    from condsim.training.export import SAMPLES, export_onnx, restore_onnx, sample_cosines
    from condsim.training.folder import RECIPE
    from condsim.training.recipe import Recipe, Source, load_recipe
    from condsim.training.run import run_or_resume

OBJECTIVE = {"mse": 2.0, "correlation": 1.0, "ranking": 0.33}
REHEARSAL_WEIGHT = 4.0
MIN_STEPS_PER_EPOCH = 10

# Rows to measure on; of few rows, up to a third are used for that.
MIN_DEV_ROWS = 25

# Pairs that scale and head are carried over on.
CARRIED_PAIRS = 1_000

# Lowest cosine between a model and its rebuilt encoder.
MIN_REBUILT_COSINE = 0.999

# Ridge penalty on the change of a head's weight, per row; the features have a spread of about 1.
HEAD_CHANGE_PENALTY = 0.1

# Epochs without a gain that end the training, and the share of all epochs that it usually runs.
PATIENCE = 3
USUAL_SHARE = 0.8
# With a smaller share of the steps that are usual, `adapt` warns.
FEW_STEPS = 1 / 3

# Time of the export and the measurements, relative to the preparation.
EXPORT_SHARE = 1.0

logger = logging.getLogger("condsim")


class AdaptSettings(Settings):
    """Settings of an adaptation.

    Attributes:
        epochs: Maximum number of passes over the labeled rows; it ends earlier once the rows to
            measure on get no better.
        minutes: Plan as many training steps as fit into this time at the speed of the first ones,
            which is measured; measuring and exporting come on top. None: as ``epochs`` asks for.
        rehearsal: Share of training that keeps the rest of the model unchanged, in (0, 1).
        dev_share: Share of the rows to measure on, in (0, 1), raised up to a third where it would
            be fewer than 25 rows; not used with a file of them.
        learning_rate: Highest learning rate.
        batch_size: Texts under a condition in a batch.
        seed: Seed of the split, the order and the draws.
    """

    subject: ClassVar[str] = "adapt setting"

    epochs: Annotated[int, Field(ge=1)] = 10
    minutes: Annotated[float, Field(gt=0)] | None = None
    rehearsal: Annotated[float, Field(gt=0, lt=1)] = 1 / 3
    dev_share: Annotated[float, Field(gt=0, lt=1)] = 0.2
    learning_rate: Annotated[float, Field(gt=0)] = 6e-5
    batch_size: Annotated[int, Field(ge=8)] = 48
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0


def adapt(
    labeled: Path | str,
    output: Path | str,
    *,
    model: Path | str = "default",
    dev: Path | str | None = None,
    settings: AdaptSettings | None = None,
    force: bool = False,
) -> Adaptation:
    """Adapt a bi-encoder to labeled pairs and export it to int8 ONNX.

    Part of the rows is held out to measure the model. While it learns the others, it rehearses
    texts of many domains under many conditions, whose vectors should not change. The epoch with the
    best mean of Spearman and pair accuracy is kept. Unfinished work is next to ``output`` in a
    folder that ends in ``.work``; the same call continues it, also after a kill.

    Args:
        labeled: Labeled pairs, 50 to 2,000 are a good number: columns ``sentence1``,
            ``sentence2``, ``condition`` and ``label`` (1 to 5, 0 to 1, or ``alike`` and
            ``different``). Rows of a table with attributes are drawn by
            `condsim.rows.build.build_criteria`.
        output: The folder to write; missing or empty.
        model: ``default``, a folder that ``condsim export`` or this function wrote, or a folder of
            a bi-encoder with mean pooling.
        dev: Labeled pairs to measure on; a share of ``labeled`` if None.
        settings: Settings; the defaults if None.
        force: Whether to write a model that does not do better on the rows to measure on.

    Returns:
        The figures before and after; ``output`` is None if nothing was written.

    Raises:
        InputError: If a file, a setting or the output folder breaks a rule.
        ModelError: If the model cannot be loaded or is of another kind.
        KeyboardInterrupt: If Ctrl-C ended the training; the same call continues it.

    Example:
        >>> result = adapt("labeled.csv", "model")  # doctest: +SKIP
        >>> print(result.to_text())  # doctest: +SKIP
    """
    started = time.monotonic()
    settings = settings or AdaptSettings()
    target, source = Path(output).absolute(), model_folder(model)
    if not source.is_dir():
        raise ModelError(f"There is no model folder {str(model)!r}.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} exists and is never overwritten; give another --output.")
    files = [Path(labeled)]
    pairs = read_labeled(labeled)
    if dev is None:
        share = max(settings.dev_share, min(1 / 3, MIN_DEV_ROWS / len(pairs)))
        train_pairs, dev_pairs = split_labeled(pairs, share=share, seed=settings.seed)
    else:
        files.append(Path(dev))
        train_pairs, dev_pairs = pairs, read_labeled(dev, at_least=3)
        trained = {pair.pair for pair in train_pairs}
        shared = sum(pair.pair in trained for pair in dev_pairs)
        if shared:
            raise InputError(
                f"{dev}: {shared} rows to measure on are pairs of the labeled file; remove them "
                "from one of the two."
            )
    work = target.with_name(f"{target.name}.work")
    with sole_process(work):
        run = _AdaptationRun(source, work, settings, files)
        run.train(target.name, train_pairs, dev_pairs, started=started)
        after = run.export(target.name, train_pairs)
        result = run.compare(after, len(train_pairs), started=started)
        if not (result.helped or force):
            return result
        run.publish(target, result)
    shutil.rmtree(work)
    return replace(result, output=target)


class _AdaptationRun:
    """The steps of an adaptation in its work folder; its training is resumed."""

    def __init__(
        self, source: Path, work: Path, settings: AdaptSettings, files: Sequence[Path]
    ) -> None:
        """Store the inputs, or check that the work folder was begun with the same."""
        self.source, self.work, self.settings, self.files = source, work, settings, files
        self.revision = revision_of(source)
        inputs = {
            "model": self.revision,
            "rows": [sha256_of(path) for path in files],
            "settings": settings.model_dump(),
        }
        record_inputs(work / "inputs.json", inputs, subject="an adaptation")
        self.rehearsal = load_rehearsal()
        self.before: EmbeddingScorer
        if (source / MODEL_FILE).is_file():
            self.before = OnnxScorer(source)
        elif (kind := kind_of(source)) == "bi-encoder":
            self.before = cast(EncoderScorer, load_trained(source))
        else:
            raise ModelError(f"{source} is a {kind}; only a bi-encoder can be adapted.")

    def train(
        self,
        name: str,
        train_pairs: Sequence[LabeledPair],
        dev_pairs: Sequence[LabeledPair],
        *,
        started: float,
    ) -> None:
        """Train in the folder ``run``, by the recipe that it was begun with if there is one."""
        run = self.work / "run"
        if (run / RECIPE).is_file():
            recipe = load_recipe(run / RECIPE)
        else:
            recipe = self._recipe(name, train_pairs, dev_pairs)
        prepared = time.monotonic() - started

        def report(seconds_per_step: float, steps_done: int) -> None:
            """Log how long the adaptation will take."""
            epochs = max(min(recipe.epochs, PATIENCE + 1), round(USUAL_SHARE * recipe.epochs))
            steps = (recipe.steps or 0) * epochs / recipe.epochs
            rest = max(0.0, steps - steps_done) * seconds_per_step + EXPORT_SHARE * prepared
            logger.info(
                "about %.1f minutes in all, if it runs %d of %d epochs",
                (time.monotonic() - started + rest) / 60,
                epochs,
                recipe.epochs,
            )

        run_or_resume(recipe, run, callbacks=[FirstEpochCallback(report)])

    def _recipe(
        self, name: str, train_pairs: Sequence[LabeledPair], dev_pairs: Sequence[LabeledPair]
    ) -> Recipe:
        """Write the data of the training and plan it."""
        settings = self.settings
        train, dev = self.work / "train.csv", self.work / "dev.csv"
        write_labeled(train_pairs, train)
        write_labeled(dev_pairs, dev)
        start = self._start()
        scorer = cast(EncoderScorer, load_trained(start))
        steps, bfloat16 = self._plan(start, train_pairs, dev_rows=len(dev_pairs))
        most = math.ceil(steps * settings.batch_size * settings.rehearsal)
        inputs, vectors = self.rehearsal.write(scorer, self.work, most=most, seed=settings.seed)
        rehearsal = Source(
            file=str(inputs),
            vectors=str(vectors),
            share=settings.rehearsal,
            objective={"vectors": REHEARSAL_WEIGHT},
        )
        return Recipe(
            name=name,
            train=str(train),
            dev=str(dev),
            backbone=str(start),
            order=scorer.order,
            max_seq_length=scorer.model.max_seq_length or 128,
            objective=OBJECTIVE,
            scale=10.0,
            epochs=min(settings.epochs, steps),
            patience=PATIENCE,
            chosen_by="both",
            steps=steps,
            batch_size=settings.batch_size,
            train_share=1 - settings.rehearsal,
            sources={"rehearsal": rehearsal},
            learning_rate=settings.learning_rate,
            weight_decay=0.01,
            dropout=0.0,
            freeze=["embeddings"],
            precision="bfloat16" if bfloat16 else "float32",
            checkpoint_steps=50,
            seed=settings.seed,
        )

    def _start(self) -> Path:
        """Folder of the float32 model to start from; an exported one is rebuilt."""
        if isinstance(self.before, EncoderScorer):
            _check_plain(self.source, self.before)
            return self.source
        start = self.work / "start"
        shutil.rmtree(start, ignore_errors=True)
        restore_onnx(self.source, start)
        return start

    def _plan(
        self, start: Path, pairs: Sequence[LabeledPair], *, dev_rows: int
    ) -> tuple[int, bool]:
        """Decide the steps and whether to use bfloat16, and log how long they will take."""
        settings = self.settings
        texts = {
            (pair.condition, text) for pair in pairs for text in (pair.sentence1, pair.sentence2)
        }
        per_epoch = math.ceil(len(texts) / (settings.batch_size * (1 - settings.rehearsal)))
        steps = settings.epochs * max(MIN_STEPS_PER_EPOCH, per_epoch)
        seconds, bfloat16 = _seconds_per_step(start, sorted(texts), settings.batch_size)
        if settings.minutes is not None:
            usual, affordable = steps, int(60 * settings.minutes / seconds)
            steps = min(usual, max(MIN_STEPS_PER_EPOCH, affordable))
            if steps < FEW_STEPS * usual:
                logger.warning(
                    "only %d steps fit in %g minutes; %d are usual, about %.0f minutes at the "
                    "speed of this machine now. With so few, expect a weaker model.",
                    steps,
                    settings.minutes,
                    usual,
                    usual * seconds / 60,
                )
        logger.info(
            "%d rows to train on, %d to measure on; at most %d steps, about %.0f min (measured "
            "again after the first epoch)",
            len(pairs),
            dev_rows,
            steps,
            max(1.0, steps * seconds / 60),
        )
        return steps, bfloat16

    def export(self, name: str, train_pairs: Sequence[LabeledPair]) -> OnnxScorer:
        """Export in the folder ``exported``, with the scale and the head carried over."""
        output = self.work / "exported"
        shutil.rmtree(output, ignore_errors=True)
        before, rehearsed = self.before, self.rehearsal.rehearsed
        dev = load_task(self.work / "dev.csv", scale=LIKERT)
        samples = [*SAMPLES]
        samples += [(text, pair.condition) for pair in train_pairs for text in pair.pair][:200]
        samples += [(text, row[2]) for row in rehearsed[:100] for text in row[:2]]
        has_settings = (self.source / FILE_NAME).is_file()
        stored = ModelSettings.load(self.source).facts if has_settings else {}
        facts: dict[str, Fact] = {
            "base_model": str(stored.get("base_model", before.name)),
            "adapted_from": f"{before.name} {self.revision}",
            "training_data": ", ".join(path.name for path in self.files),
            "dev_data": f"{len(dev)} rows of these files",
        }
        export_onnx(self.work / "run", output, samples=samples, name=name, facts=facts)
        after = OnnxScorer(output)
        pairs = _mixed_conditions(rehearsed, most=CARRIED_PAIRS, seed=self.settings.seed)
        # Pairs keep their scores, and rows to measure on get their labels.
        columns = tuple(zip(*pairs, strict=True))
        raw = after.score(*columns, scale="raw")
        dev_raw = after.score(dev.sentences1, dev.sentences2, dev.conditions, scale="raw")
        scores = np.concatenate([before.score(*columns, scale="unit"), dev.gold])
        calibration = fit_calibration(np.concatenate([raw, dev_raw]), scores)
        replace(after.settings, calibration=calibration).save(output)
        if before.head is not None:
            _carried_head(before.head, before, after, pairs).save(output / "applicability.json")
        return OnnxScorer(output)

    def compare(self, after: OnnxScorer, train_rows: int, *, started: float) -> Adaptation:
        """Measure the model before and after."""
        dev = load_task(self.work / "dev.csv", scale=LIKERT)
        dev = replace(dev, name="rows to measure on")
        report = evaluate(after, dev, against=self.before)
        columns = tuple(zip(*self.rehearsal.measured, strict=True))
        change = np.abs(after.score(*columns) - self.before.score(*columns))
        return Adaptation(
            output=None,
            report=report,
            train_rows=train_rows,
            rehearsal_rows=len(self.rehearsal.measured),
            moved=float(change.mean()),
            moved_most=float(np.quantile(change, 0.95)),
            seconds=time.monotonic() - started,
        )

    def publish(self, output: Path, result: Adaptation) -> None:
        """Add report, card and manifest to the model and move it to its place."""
        folder = self.work / "exported"
        result.report.to_json(folder / "report.json")
        card = folder / "README.md"
        text = card.read_text(encoding="utf-8")
        write_text(card, f"{text}\n## Adaptation\n\n```text\n{result.to_text()}\n```\n")
        # NaN is None in these.
        content = result.report.to_dict()
        figures = {
            when: {name: content[key]["metrics"][name] for name in FIGURES}
            for when, key in (("before", "against"), ("after", "model"))
        }
        facts = {
            "kind": "adapted model",
            "source": {"name": self.before.name, "revision": self.revision},
            "files": {path.name: sha256_of(path) for path in self.files},
            "settings": self.settings.model_dump(),
            "train_rows": result.train_rows,
            "dev_rows": result.report.valid_rows,
            "dev": figures,
            "rehearsal": {
                "rows": result.rehearsal_rows,
                "moved": round(result.moved, 4),
                "moved_most": round(result.moved_most, 4),
            },
        }
        write_json(facts, folder / "manifest.json")
        # The folder is empty.
        if output.is_dir():
            output.rmdir()
        folder.rename(output)


@without_progress_bars()
def _check_plain(source: Path, before: EncoderScorer) -> None:
    """Check that a recipe rebuilds the model: a bi-encoder with mean pooling."""
    model = build_bi_encoder(str(source), max_seq_length=before.model.max_seq_length)
    rebuilt = EncoderScorer(model, name=before.name, order=before.order)
    if sample_cosines(rebuilt, before).min() < MIN_REBUILT_COSINE:
        raise ModelError(
            f"{source} must be a transformer with mean pooling and nothing after it; train it with "
            "'condsim train' instead."
        )


def _seconds_per_step(
    start: Path, texts: Sequence[tuple[str, str]], batch_size: int
) -> tuple[float, bool]:
    """Time training steps of the model; return also whether bfloat16 is clearly faster."""
    with without_progress_bars():
        model = SentenceTransformer(str(start), local_files_only=True)
    if model.device.type != "cpu":
        return 0.05, uses_bfloat16("auto")
    backbone = backbone_of(model)
    speeds = training_speeds(backbone, [str(backbone.config._attn_implementation)])
    fastest = fastest_training(speeds)
    sample = [list(pair) for pair in texts[:: max(1, len(texts) // 200)]]
    tokens = float(model.preprocess(sample)["attention_mask"].sum()) / len(sample)
    seconds = batch_size * tokens / MEASURED_TOKENS / speeds[fastest]
    return seconds, fastest.startswith("bfloat16")


def _mixed_conditions(pairs: Pairs, *, most: int, seed: int) -> Pairs:
    """Draw pairs, half of them under the condition of another, which mostly does not apply."""
    order = np.random.default_rng(seed).permutation(len(pairs))[:most]
    drawn = [pairs[index] for index in order.tolist()]
    half = len(drawn) // 2
    mixed = []
    for number, (sentence1, sentence2, _) in enumerate(drawn[:half]):
        mixed.append((sentence1, sentence2, drawn[(number + 1) % half][2]))
    return (*mixed, *drawn[half:])


def _carried_head(
    head: ApplicabilityHead, before: EmbeddingScorer, after: EmbeddingScorer, pairs: Pairs
) -> ApplicabilityHead:
    """Change the weights of a head so that its probabilities of pairs stay as before.

    The change is a ridge regression of the logits; where the embeddings did not move, it is 0.
    """
    first, second, conditions = map(list, zip(*pairs, strict=True))
    texts = [*first, *second]
    conditions *= 2
    expected = head_features(before.embedded(texts, conditions)) @ head.weights + head.bias  # (2n,)
    values = head_features(after.embedded(texts, conditions))  # (2n, f)
    change = Ridge(alpha=HEAD_CHANGE_PENALTY * len(values))
    change.fit(values, expected - (values @ head.weights + head.bias))
    return ApplicabilityHead(
        model=after.name,
        weights=head.weights + change.coef_,
        bias=head.bias + float(change.intercept_),
        probe=after.encode(*PROBE),
        facts={**head.facts, "carried_over_from": before.name},
    )
