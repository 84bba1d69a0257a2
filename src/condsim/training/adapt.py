"""Adapts a model: plan, rehearsal, training, export, comparison; a killed one goes on."""

from __future__ import annotations

import json
import logging
import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, cast

import numpy as np
from pydantic import Field
from sentence_transformers import SentenceTransformer

from condsim.cache import sole_process, write_manifest
from condsim.config import Settings as BaseSettings
from condsim.data.load import load_task
from condsim.errors import InputError, ModelError
from condsim.evaluation.evaluate import evaluate
from condsim.io import sha256_of, write_text
from condsim.model.backbone import without_progress_bars
from condsim.model.builders import build_bi_encoder
from condsim.model.embedding import EmbeddingScorer
from condsim.model.onnx import OnnxScorer
from condsim.model.precision import uses_bfloat16
from condsim.model.settings import FILE_NAME, Fact, Settings, model_folder, revision_of
from condsim.model.torch import EncoderScorer
from condsim.model.trained import load_trained
from condsim.training.adapt_result import Adaptation, movement
from condsim.training.adapt_rows import (
    LabelledRow,
    Rehearsal,
    carried_calibration,
    carried_head,
    load_rehearsal,
    mixed_conditions,
    read_labelled,
    split_labelled,
    write_labelled,
)
from condsim.training.arithmetic import backbone_of, measure
from condsim.training.export import SAMPLES, export_onnx
from condsim.training.recipe import Recipe, Source
from condsim.training.restore import exported_folder, restore_onnx
from condsim.training.run import run_or_resume
from condsim.types import Task

_LOGGER = logging.getLogger("condsim")
_OBJECTIVE = {"mse": 2.0, "correlation": 1.0, "ranking": 0.33}
_KEEP = 4.0  # weight of the rehearsed vectors
_FEWEST_STEPS = 10  # of an epoch, however few the rows
_TOKENS = 40  # of the texts that `measure` times
_ENOUGH = 25  # rows to measure on; of few rows, up to a third are kept for that
_CARRIED = 1_000  # pairs that scale and head are carried over on
_KINDS = {"float32": False, "bfloat16": True}


class AdaptSettings(BaseSettings):
    """How a model is adapted.

    Attributes:
        epochs: Most passes over the labelled rows; it ends earlier once the rows to measure on get
            no better.
        minutes: Plan as many training steps as fit into this time; None: what ``epochs`` asks for.
        rehearsal: Share of what is trained on that keeps the rest of the model as it was, in
            (0, 1).
        dev_share: Share of the rows to measure on, in (0, 1), raised up to a third where it would
            be fewer than 25 rows; not used with a file of them.
        learning_rate: Highest learning rate.
        batch_size: Texts under a condition in a batch.
        seed: Seed of the split, the order and the draws.
    """

    what: ClassVar[str] = "adapt setting"

    epochs: Annotated[int, Field(ge=1)] = 10
    minutes: Annotated[float, Field(gt=0)] | None = None
    rehearsal: Annotated[float, Field(gt=0, lt=1)] = 1 / 3
    dev_share: Annotated[float, Field(gt=0, lt=1)] = 0.2
    learning_rate: Annotated[float, Field(gt=0)] = 6e-5
    batch_size: Annotated[int, Field(ge=8)] = 48
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0


def adapt(
    labelled: Path | str,
    output: Path | str,
    *,
    model: Path | str = "default",
    dev: Path | str | None = None,
    settings: AdaptSettings | None = None,
    force: bool = False,
) -> Adaptation:
    """Adapts a bi-encoder to labelled pairs and exports it to int8 ONNX.

    A part of the rows is kept to measure on. While the model learns the others, it rehearses texts
    of many domains under many conditions, whose vectors are to stay as they are. The epoch with the
    best mean of Spearman and pair accuracy is kept. Unfinished work lies beside ``output`` in a
    folder that ends in ``.work``; the same call goes on with it, also after a kill.

    Args:
        labelled: Labelled pairs, 50 to 2,000 are a good number; see `read_labelled`. Rows of a
            table with attributes are drawn by `condsim.rows.criteria.build.build_criteria`.
        output: The folder to write; missing or empty.
        model: ``default``, a folder that ``condsim export`` or this function wrote, or a folder of
            a bi-encoder with mean pooling.
        dev: Labelled pairs to measure on; a share of ``labelled`` if None.
        force: Whether to write a model that does not do better on the rows to measure on.

    Returns:
        The figures before and after; ``output`` is None if nothing was written.

    Raises:
        InputError: If a file, a setting or the output folder breaks a rule.
        ModelError: If the model cannot be loaded or is of another kind.
        KeyboardInterrupt: If Ctrl-C ended the training; the same call goes on with it.

    Example:
        >>> result = adapt("labelled.csv", "model")  # doctest: +SKIP
        >>> print(result.to_text())  # doctest: +SKIP
    """
    started = time.monotonic()
    settings = settings or AdaptSettings()
    target, source = Path(output).absolute(), _source(model)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} is there already and is never overwritten; give another one.")
    rows = read_labelled(labelled)
    if dev is None:
        share = max(settings.dev_share, min(1 / 3, _ENOUGH / len(rows)))
        parts = split_labelled(rows, share=share, seed=settings.seed)
    else:
        parts = rows, read_labelled(dev, fewest=3)
        _check_apart(*parts, Path(dev))
    files = [Path(labelled), *([] if dev is None else [Path(dev)])]
    inputs: dict[str, object] = {
        "model": revision_of(source),
        "rows": [sha256_of(path) for path in files],
        "settings": settings.model_dump(),
    }
    work = target.with_name(f"{target.name}.work")
    with sole_process(work):
        making = _Making(source, work, settings, parts, inputs)
        result = making.result(target.name, files, started=started)
        if not (result.helped or force):
            return result
        making.publish(target, result, files)
    shutil.rmtree(work)
    work.with_name(f"{work.name}.lock").unlink(missing_ok=True)
    return replace(result, output=target)


def _source(model: Path | str) -> Path:
    """The folder of a model."""
    folder = model_folder(model)
    if not folder.is_dir():
        raise ModelError(
            f"There is no model folder {str(model)!r}. Give a folder, or nothing for the bundled "
            "model."
        )
    return folder


def _check_apart(train: Sequence[LabelledRow], dev: Sequence[LabelledRow], path: Path) -> None:
    """Refuses rows to measure on that are trained on, or that measure nothing."""
    seen = {row.pair for row in train}
    both = sum(row.pair in seen for row in dev)
    if both:
        raise InputError(
            f"{path}: rows to measure on must not be trained on, and {both} are pairs of the "
            "labelled file. Remove them from one of the two."
        )


@dataclass(frozen=True)
class _Plan:
    """What was decided before the training started."""

    epochs: int
    steps: int
    bfloat16: bool


@dataclass(frozen=True)
class _Making:
    """The steps in the work folder, each skipped where it is finished."""

    source: Path
    work: Path
    settings: AdaptSettings
    parts: tuple[Sequence[LabelledRow], Sequence[LabelledRow]]
    inputs: dict[str, object]

    def __post_init__(self) -> None:
        known = self.work / "inputs.json"
        if not known.is_file():
            write_text(known, json.dumps(self.inputs))
        begun = json.loads(known.read_text(encoding="utf-8"))
        changed = [key for key, value in self.inputs.items() if begun.get(key) != value]
        if changed:
            raise InputError(
                f"{self.work} holds an adaptation that was begun with other {', '.join(changed)}. "
                "Remove that folder, or give another --output."
            )

    def result(self, name: str, files: Sequence[Path], *, started: float) -> Adaptation:
        """Trains, exports and compares."""
        before, rehearsal = self._before(), load_rehearsal()
        dev = self._train(name, rehearsal)
        after = self._exported(name, files, dev, before, rehearsal)
        report = evaluate(after, replace(dev, name="rows to measure on"), against=before)
        columns = tuple(zip(*rehearsal.measured, strict=True))
        moved, most = movement(before.score(*columns), after.score(*columns))
        return Adaptation(
            output=None,
            report=report,
            train_rows=len(self.parts[0]),
            rehearsal_rows=len(rehearsal.measured),
            moved=moved,
            moved_most=most,
            seconds=time.monotonic() - started,
        )

    def publish(self, output: Path, result: Adaptation, files: Sequence[Path]) -> None:
        """Writes what goes with the model and puts it in its place."""
        folder = self.work / "exported"
        result.report.to_json(folder / "report.json")
        card = folder / "README.md"
        text = card.read_text(encoding="utf-8").partition("\n## Adaptation")[0]
        write_text(card, f"{text}\n## Adaptation\n\n```text\n{result.to_text()}\n```\n")
        facts = {
            "source": {"name": self._before().name, "revision": self.inputs["model"]},
            "files": {path.name: sha256_of(path) for path in files},
            "settings": self.settings.model_dump(),
            **result.facts(),
        }
        write_manifest(folder, facts, what="adapted model")
        if output.is_dir():
            output.rmdir()  # it is empty
        folder.rename(output)

    def _before(self) -> EmbeddingScorer:
        if exported_folder(self.source):
            return OnnxScorer(self.source)
        scorer = load_trained(self.source)
        if not isinstance(scorer, EmbeddingScorer):
            raise ModelError(f"{self.source} is a cross-encoder; only a bi-encoder can be adapted.")
        return scorer

    def _start(self) -> Path:
        """The float32 model to start from."""
        start, partial = self.work / "start", self.work / "start.partial"
        if start.is_dir():
            return start
        shutil.rmtree(partial, ignore_errors=True)
        if exported_folder(self.source):
            restore_onnx(self.source, partial)
        else:
            self._plain_start(partial)
        partial.rename(start)
        return start

    @without_progress_bars()
    def _plain_start(self, output: Path) -> None:
        before = self._before()
        has_settings = (self.source / FILE_NAME).is_file()
        known = Settings.load(self.source) if has_settings else None
        if known is not None and known.kind != "bi-encoder":
            raise ModelError(f"{self.source} is a {known.kind}; only a bi-encoder can be adapted.")
        length = known.max_seq_length if known else None
        model = build_bi_encoder(str(self.source), max_seq_length=length)
        sentences, conditions = map(list, zip(*SAMPLES, strict=True))
        built = EncoderScorer(model, name=before.name, order=before.order)
        found = built.encode(sentences, conditions)
        if np.einsum("nd,nd->n", found, before.encode(sentences, conditions)).min() < 0.999:
            raise ModelError(
                f"{self.source} must be a transformer with mean pooling and nothing after it. "
                "Train it with 'condsim train' instead."
            )
        model.save_pretrained(str(output), create_model_card=False)
        Settings(
            kind="bi-encoder",
            name=before.name,
            order=before.order,
            calibration=before.calibration,
            max_seq_length=length or int(model.max_seq_length or 128),
        ).save(output)

    def _train(self, name: str, rehearsal: Rehearsal) -> Task:
        """Trains in the folder ``run``; gives the rows to measure on."""
        start = self._start()
        files = self.work / "train.csv", self.work / "dev.csv"
        for rows, path in zip(self.parts, files, strict=True):
            write_labelled(rows, path)
        plan, settings = self._plan(start), self.settings
        needed = math.ceil(plan.steps * settings.batch_size * settings.rehearsal)
        inputs, vectors = rehearsal.write(
            cast(EncoderScorer, load_trained(start)), self.work, most=needed, seed=settings.seed
        )
        known = Settings.load(start)
        recipe = Recipe(
            name=name,
            train=str(files[0]),
            dev=str(files[1]),
            backbone=str(start),
            order=known.order,
            max_seq_length=known.max_seq_length or 128,
            objective=_OBJECTIVE,
            scale=10.0,
            epochs=plan.epochs,
            patience=3,
            chosen_by="both",
            steps=plan.steps,
            batch_size=settings.batch_size,
            train_share=1 - settings.rehearsal,
            sources={
                "rehearsal": Source(
                    file=str(inputs),
                    vectors=str(vectors),
                    share=settings.rehearsal,
                    objective={"vectors": _KEEP},
                )
            },
            learning_rate=settings.learning_rate,
            weight_decay=0.01,
            dropout=0.0,
            freeze=["embeddings"],
            precision="bfloat16" if plan.bfloat16 else "float32",
            checkpoint_steps=50,
            seed=settings.seed,
        )
        run_or_resume(recipe, self.work / "run")
        return load_task(files[1])

    def _plan(self, start: Path) -> _Plan:
        """Decides the steps, and says how long they will take."""
        noted = self.work / "plan.json"
        if noted.is_file():
            return _Plan(**json.loads(noted.read_text(encoding="utf-8")))
        settings, train = self.settings, self.parts[0]
        texts = {(row.condition, text) for row in train for text in (row.sentence1, row.sentence2)}
        per_epoch = math.ceil(len(texts) / (settings.batch_size * (1 - settings.rehearsal)))
        steps = settings.epochs * max(_FEWEST_STEPS, per_epoch)
        seconds, bfloat16 = _seconds_of_step(start, sorted(texts), settings.batch_size)
        if settings.minutes is not None:
            steps = min(steps, max(_FEWEST_STEPS, int(60 * settings.minutes / seconds)))
        plan = _Plan(min(settings.epochs, steps), steps, bfloat16)
        _LOGGER.info(
            "%d rows to train on, %d to measure on; %d steps at most, about %s, and a minute "
            "before and after",
            *(len(train), len(self.parts[1]), steps, _time(steps * seconds)),
        )
        write_text(noted, json.dumps(vars(plan)))
        return plan

    def _exported(
        self,
        name: str,
        files: Sequence[Path],
        dev: Task,
        before: EmbeddingScorer,
        rehearsal: Rehearsal,
    ) -> OnnxScorer:
        """Exports in the folder ``exported``, with the scale and the head carried over."""
        output = self.work / "exported"
        done = self.work / "exported.json"  # written last
        if done.is_file():
            return OnnxScorer(output)
        shutil.rmtree(output, ignore_errors=True)
        own = [(text, row.condition) for row in self.parts[0] for text in row.pair][:200]
        kept = [(text, row[2]) for row in rehearsal.rehearsed[:100] for text in row[:2]]
        known = Settings.load(self.source).facts if (self.source / FILE_NAME).is_file() else {}
        facts: dict[str, Fact] = {
            "base_model": str(known.get("base_model", before.name)),
            "adapted_from": f"{before.name} {self.inputs['model']}",
            "training_data": ", ".join(path.name for path in files),
            "dev_data": f"{len(dev)} rows of these files",
        }
        samples = [*SAMPLES, *own, *kept]
        export_onnx(self.work / "run", output, samples=samples, name=name, facts=facts)
        after = OnnxScorer(output)
        pairs = mixed_conditions(rehearsal.rehearsed, most=_CARRIED, seed=self.settings.seed)
        calibration = carried_calibration(before, after, pairs, dev)
        replace(after.settings, calibration=calibration).save(output)
        head = carried_head(before, after, pairs)
        if head is not None:
            head.save(output / "applicability.json")
        write_text(done, "{}")
        return OnnxScorer(output)


def _seconds_of_step(
    start: Path, texts: Sequence[tuple[str, str]], batch_size: int
) -> tuple[float, bool]:
    """Times training steps of the model; says also whether bfloat16 is clearly faster."""
    with without_progress_bars():
        model = SentenceTransformer(str(start), local_files_only=True)
    backbone = backbone_of(model)
    if model.device.type != "cpu":
        return 0.05, uses_bfloat16("auto")
    speeds = measure(backbone, (str(backbone.config._attn_implementation),))
    by_kind = {kind: max(v for k, v in speeds.items() if k.startswith(kind)) for kind in _KINDS}
    best = "bfloat16" if by_kind["bfloat16"] > 1.1 * by_kind["float32"] else "float32"
    sample = [list(pair) for pair in texts[:: max(1, len(texts) // 200)]]
    tokens = float(model.preprocess(sample)["attention_mask"].sum()) / len(sample)
    return batch_size * tokens / _TOKENS / by_kind[best], _KINDS[best]


def _time(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"
