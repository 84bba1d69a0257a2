"""The default model, from the data files to the exported folder.

```
C-STS train, relabelled ──┐                                          dev rows but a fifth
captions, labelled ───────┤                                                   │
captions, by functions ───┤             wordings      wordings                ▼
criteria of open sets ────┼─► first ─► consistent ─► further ─────────► five folds ─► mean
attributes, written pairs ┤   from the                                        │         │
plain texts' vectors ─────┘   backbone                                        └► figure │
                                                         the default model so far ──► joined
                                                                                        │
                                   int8 and head ◄── final ◄── settled ◄── wordings ────┘
```

A tenth of the mean is the weights of the backbone, also in the models that are only measured, and
in those that set the targets of the next stage. Half of ``joined`` are the weights of the default
model so far, and two fifths of ``final`` those of ``joined``.

Each step is kept in the folder and skipped where it is finished; a killed training continues. No
row has a text that is held out. ``papers/docs/experiments.md`` says what each step brings.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from condsim.console import Progress, silent
from condsim.data.csts import load_applicability, load_csts
from condsim.data.files import iter_rows
from condsim.data.held_out import held_out_texts
from condsim.data.load import load_task
from condsim.data.tasks import join_tasks
from condsim.errors import InputError
from condsim.evaluation.evaluate import Scores, evaluate
from condsim.evaluation.report import Report
from condsim.io import replacing, sha256_of, write_text
from condsim.loading import load_scorer
from condsim.model.base import PairScorer
from condsim.model.builders import resolve_backbone
from condsim.model.calibration import Calibration, fit_calibration
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import revision_of
from condsim.model.torch import EncoderScorer
from condsim.model.trained import load_trained
from condsim.rows.criteria.build import build_criteria
from condsim.rows.criteria.settings import CriteriaSettings
from condsim.rows.weak.build import WeakSettings, build_weak
from condsim.rows.weak.registry import REGISTRY
from condsim.training.applicability import fit_head, load_extra
from condsim.training.averaging import average_models
from condsim.training.export import export_onnx, samples_of
from condsim.training.folder import REPORT
from condsim.training.recipe import Recipe, load_recipe
from condsim.training.run import run_or_resume
from condsim.types import FloatArray, Task
from papers.columns import DEFAULT_BACKBONE
from papers.consistent import WORDINGS, read_wordings, shared_vectors, write_consistent
from papers.default_data import (
    PLAIN,
    trainable_sets,
    write_absent,
    write_captions,
    write_folds,
    write_labelled,
    write_plain,
)
from papers.naming import recipe_file
from papers.options import Options, data_files, data_path
from papers.relabelled import CAPTION_LABELS, LABELS

WEAK = WeakSettings(
    rows=60_000, absent=10_000, k=24, sample=60_000, text_encoder="words", answers=False
)
"""Settings of the weak rows."""

CRITERIA = CriteriaSettings(rows=9_000, hard=1.0)
"""Settings of the rows of the open sets; :data:`ATTRIBUTES` has those of our own attributes."""

ATTRIBUTES = CriteriaSettings(rows=1_000, hard=1.0)

OPINIONS = CriteriaSettings(rows=30_000, hard=1.0)
"""Of the one open set of opinions about several aspects of a text, the hardest kind."""

_OPINIONS = ("mams",)

_LOGGER = logging.getLogger("condsim")
_NAME = "condsim-minilm"
_ROOT = Path(__file__).resolve().parents[1] / "data"
_ALSO = (
    "captions, labelled by a language model and by functions; texts of other domains with labelled "
    "criteria; pairs and texts written for condsim"
)
# Rows that the applicability head is fitted on, of captions and of criteria each.
_EXTRA = 10_000
_FOLDS = 5
_STAGES = ("mixed", "consistent", "further", "tuned", "settled")
_BEFORE = "(before the last stage and the mean with the former model)"
# Share in the default model of the weights before its last stage.
_UNSETTLED = 0.4


@dataclass(frozen=True)
class DefaultModelFiles:
    """Input files of the model.

    Attributes:
        train: C-STS rows to train on.
        dev: C-STS rows that are measured on, and trained on in the five folds.
        captions: Files with the columns ``image_id`` and ``caption``.
        nli: Folder of the NLI files that plain sentences are drawn from.
        criteria: Folder of the open sets of labelled texts.
        held_out: Texts that are in no row.
        written: Pairs written for condsim.
        attributes: Folder of texts with attributes written for condsim.
        caption_labels: Labels of pairs of captions.
        backbone: Hub name or folder.
        former: A model of the same backbone, which has a share of a half in what the last stage
            begins from; None for none. Of what ships, that of revision a1bbb4c.
    """

    train: Path
    dev: Path
    captions: tuple[Path, ...]
    nli: Path
    criteria: Path
    held_out: Path
    written: Path = _ROOT / "written" / "train.txt"
    attributes: Path = _ROOT / "attributes"
    caption_labels: Path = CAPTION_LABELS
    backbone: str = DEFAULT_BACKBONE.model
    former: str | None = "default"

    @property
    def tables(self) -> tuple[Path, ...]:
        """The files of attributes written for condsim."""
        return tuple(sorted(self.attributes.glob("*.jsonl")))

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files that are read."""
        plain = (self.nli / name for name, _ in PLAIN)
        sets = trainable_sets(self.criteria).values()
        own = (LABELS, self.caption_labels, WORDINGS, self.written, *self.tables)
        rows = (self.train, self.dev, self.held_out, *self.calibration)
        return (*rows, *self.captions, *plain, *sets, *own)

    @property
    def calibration(self) -> tuple[Path, ...]:
        """Rows beyond captions that the scores are calibrated on."""
        return (self.criteria / "dev_rows.csv", self.written.with_name("dev.txt"))

    def to_dict(self) -> dict[str, object]:
        """Values that must not change while a model is half made: file revisions and settings."""
        recipes = [recipe_file(f"minilm/{name}.yaml") for name in _STAGES]
        return {
            "files": {
                f"{p.parent.name}/{p.name}": sha256_of(p)[:12] for p in (*self.paths, *recipes)
            },
            "backbone": self.backbone,
            "former": self.former and revision_of(self.former),
        }


def default_files(options: Options) -> DefaultModelFiles:
    """Find what the model is made from below the folder of the data sets."""
    if len(options.backbones) > 1:
        raise InputError(f"default-model takes one --backbone, got {len(options.backbones)}.")
    captions = data_path(options, "captions")
    found = tuple(sorted(captions.glob("*.tsv.gz")))
    if not found:
        raise InputError(f"{captions} has no files of captions (*.tsv.gz).")
    data = data_files("c-sts", options)
    return DefaultModelFiles(
        train=data.train,
        dev=data.dev,
        captions=found,
        nli=data_path(options, "nli"),
        criteria=data_path(options, "criteria"),
        held_out=data_path(options, "csts-reannotated/held-out.sha256"),
        backbone=options.backbones[0].model,
    )


def make_default_model(
    files: DefaultModelFiles,
    work: Path,
    progress: Progress = silent,
    *,
    weak: WeakSettings = WEAK,
    folds: int = _FOLDS,
) -> Report:
    """Make the model, or go on with it.

    The folder ``exported`` is what ships inside the package, ``final`` its float32 form;
    ``out-of-fold.json`` is the report on dev rows, each scored by the run that had not seen it;
    ``without-dev.json`` that of the stages before, which saw none; both of int8 models, before
    the former model has a share.
    """
    _begin(files, work, weak)
    making = _Making(files, work, progress)
    weak_rows, absent = making.weak_rows(weak)
    sources = making.sources(weak_rows)
    mixed = making.recipe("minilm/mixed", sources, train=str(sources["csts"]))
    first = making.run("first", mixed.replaced(backbone=files.backbone))
    consistent = making.reworded("consistent", first, making.smoothed(first), sources)
    further = making.reworded("further", consistent, making.smoothed(consistent), sources, seed=1)
    making.without_dev(further)
    tuned = making.recipe("minilm/tuned", sources, backbone=str(further))
    runs, dev, cosines = making.tuned(tuned, folds=folds)
    mean = making.average(runs, "mean", folds_of=files.dev)
    joined = making.joined(mean)
    settled = making.reworded("settled", joined, joined, sources, seed=2)
    final = making.average(
        [settled], "final", pretrained=str(joined), share=_UNSETTLED, folds_of=files.dev
    )
    making.export(final, mean, sources, absent, dev, cosines)
    return Report.from_json(work / "out-of-fold.json")


@dataclass(frozen=True)
class _Making:
    """The steps, each skipped where it is finished."""

    files: DefaultModelFiles
    work: Path
    progress: Progress = silent

    def step(self, name: str, make: Callable[[Path], object]) -> Path:
        output = self.work / name
        if not output.is_file():
            _LOGGER.info("%s", name)
            make(output)
        return output

    def weak_rows(self, settings: WeakSettings) -> tuple[Path, Path]:
        weak, absent = self.work / "weak.csv", self.work / "absent.csv"
        # This file is written last.
        if not absent.is_file():
            build_weak(
                self.files.captions,
                weak,
                REGISTRY,
                settings=settings,
                cache=self.work / "weak.cache",
                progress=self.progress,
                exclude=(self.files.dev, self.files.held_out),
                like=self.files.train,
                absent_output=absent,
            )
        return weak, absent

    def sources(self, weak: Path) -> dict[str, Path]:
        """The file of each source of the recipes but that of wordings, which takes a model."""
        files, held_out = self.files, held_out_texts([self.files.held_out])

        def drawn(name: str, paths: Sequence[Path], settings: CriteriaSettings) -> Path:
            def draw(output: Path) -> None:
                exclude = (files.held_out,)
                build_criteria(paths, output, settings, exclude=exclude, progress=self.progress)

            return self.step(name, draw)

        def labelled(output: Path) -> None:
            write_labelled(files.train, output, exclude=held_out)

        def captions(output: Path) -> None:
            write_captions(files.captions, files.caption_labels, output, exclude=held_out)

        def sentences(output: Path) -> None:
            write_plain(files.nli, files.captions, sets, output, exclude=held_out)

        found = trainable_sets(files.criteria)
        sets, opinions = [*found.values()], [found[name] for name in _OPINIONS if name in found]
        plain = self.step("plain.csv", sentences)
        self.step("plain.npy", lambda output: self.encode(plain, output))
        return {
            "csts": self.step("csts.csv", labelled),
            "captions": self.step("captions.csv", captions),
            "weak": weak,
            "written": files.written,
            "criteria": drawn("criteria.csv", sets, CRITERIA),
            "opinions": drawn("opinions.csv", opinions or sets, OPINIONS),
            "attributes": drawn("attributes.csv", files.tables, ATTRIBUTES),
            "plain": plain,
        }

    def encode(self, sentences: Path, output: Path) -> None:
        """Encode sentences by the backbone, as it is before it learns conditions."""
        texts = [row.text("sentence") for row in iter_rows(sentences, columns=("sentence",))]
        scorer = load_trained(resolve_backbone(self.files.backbone))
        if not isinstance(scorer, EncoderScorer):
            raise InputError(f"{self.files.backbone} must be a bi-encoder, which makes embeddings.")
        _save_vectors(scorer.encode(texts), output)

    def reworded(
        self, name: str, start: Path, teacher: Path, sources: dict[str, Path], *, seed: int = 0
    ) -> Path:
        """Train a model further, also on texts under all wordings of a condition.

        Their target is the mean of the vectors that the teacher gives, and they are a source from
        here on.
        """
        names = ("csts", "captions", "criteria", "attributes")
        labelled = [*(sources[name] for name in names), self.files.written]
        exclude = held_out_texts([self.files.held_out])

        def write(output: Path) -> None:
            write_consistent(labelled, output, wordings=read_wordings(), exclude=exclude, seed=seed)

        inputs = self.step(f"{name}.csv", write)
        self.step(
            f"{name}.npy",
            lambda output: _save_vectors(shared_vectors(inputs, self.int8(teacher)), output),
        )
        sources[name] = inputs
        written = str(self.files.written)
        return self.run(
            name, self.recipe(f"minilm/{name}", sources, train=written, backbone=str(start))
        )

    def recipe(self, name: str, sources: Mapping[str, Path], **changes: object) -> Recipe:
        """A recipe with the files made here; the vectors of a file are next to it."""
        recipe = load_recipe(recipe_file(f"{name}.yaml"))
        filled = {
            key: source.replaced(
                file=str(sources[key]),
                vectors=source.vectors and str(sources[key].with_suffix(".npy")),
            )
            for key, source in recipe.sources.items()
        }
        return recipe.replaced(dev=str(self.files.dev), sources=filled, **changes)

    def run(self, name: str, recipe: Recipe) -> Path:
        folder = self.work / name
        if not (folder / REPORT).is_file():
            _LOGGER.info("%s", name)
        run_or_resume(recipe, folder)
        return folder

    def tuned(self, recipe: Recipe, *, folds: int) -> tuple[list[Path], Task, FloatArray]:
        """A run for each fold of dev, and all dev rows with the cosines of the run that saw none.

        The report on these is written too.
        """
        runs, parts, cosines = [], [], []
        for number, (train, own) in enumerate(write_folds(self.files.dev, self.work, folds=folds)):
            of_fold = recipe.replaced(train=str(train), dev=str(own), seed=recipe.seed + number)
            runs.append(self.run(f"fold-{number}", of_fold))
            parts.append(load_csts(own))
            cosines.append(_raw(self.int8(self.smoothed(runs[-1])), parts[-1]))
        task = join_tasks(parts, name=f"{self.files.dev.stem}, out of fold")
        raw = np.concatenate(cosines)
        evaluate(Scores(_NAME, raw), task).to_json(self.work / "out-of-fold.json")
        return runs, task, raw

    def without_dev(self, run: Path) -> None:
        """Measure the model that has seen no dev row."""
        output = self.work / "without-dev.json"
        if not output.is_file():
            task = load_csts(self.files.dev)
            raw = _raw(self.int8(self.smoothed(run)), task)
            evaluate(Scores(_NAME, raw), task).to_json(output)

    def smoothed(self, run: Path) -> Path:
        """A run with a tenth of the backbone."""
        return self.average([run], f"{run.name}-mean")

    def int8(self, model: Path) -> OnnxScorer:
        """A model as it would ship."""
        folder, partial = (model.with_name(f"{model.name}-int8{end}") for end in ("", ".partial"))
        if not folder.is_dir():
            export_onnx(model, partial, samples=self.samples())
            partial.rename(folder)
        return OnnxScorer(folder)

    def samples(self) -> list[tuple[str, str]]:
        """Texts and conditions as the model will see them."""
        names = ("csts", "criteria", "attributes")
        return [pair for name in names for pair in samples_of(self.work / f"{name}.csv")]

    def joined(self, mean: Path) -> Path:
        """The mean of the model made here and the former one."""
        former = self.files.former
        if former is None:
            return mean
        return self.average([mean], "joined", pretrained=former, share=0.5, folds_of=self.files.dev)

    def average(
        self,
        runs: Sequence[Path],
        name: str,
        *,
        pretrained: str | None = None,
        share: float = 0.1,
        folds_of: Path | None = None,
    ) -> Path:
        """The mean of runs and another model, the backbone by default, which has the share."""
        mean, partial = self.work / name, self.work / f"{name}.partial"
        if not mean.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
            average_models(
                runs,
                partial,
                name=_NAME,
                base_model=self.files.backbone,
                pretrained=pretrained or self.files.backbone,
                pretrained_share=share,
                float16=True,
                folds_of=folds_of,
            )
            partial.rename(mean)
        return mean

    def applies(self) -> Path:
        """Rows of criteria that a text does or does not tell of."""
        sets = [*trainable_sets(self.files.criteria).values(), *self.files.tables]
        held_out = held_out_texts([self.files.held_out])
        return self.step(
            "applies.csv",
            lambda output: write_absent(sets, output, rows=_EXTRA, exclude=held_out),
        )

    def export(
        self,
        final: Path,
        mean: Path,
        sources: Mapping[str, Path],
        absent: Path,
        dev: Task,
        cosines: FloatArray,
    ) -> None:
        """Write what ships; ``cosines`` of dev rows are out of fold."""
        output = self.work / "exported"
        head = output / "applicability.json"
        # This file is written last.
        if head.is_file():
            return
        out_of_fold = Report.from_json(self.work / "out-of-fold.json").model
        facts: dict[str, str] = {
            "also_trained_on": _ALSO,
            "criteria_sets": ", ".join(trainable_sets(self.files.criteria)),
            "dev_spearman_out_of_fold": f"{out_of_fold.metrics['spearman'].value:.1f} {_BEFORE}",
        }
        export_onnx(final, output, samples=self.samples(), facts=facts)
        scorer = OnnxScorer(output)
        calibration = self.calibration(scorer, mean, dev, cosines)
        replace(scorer.settings, calibration=calibration).save(output)
        labelled = load_applicability(self.files.dev)
        extra = load_extra(
            (sources["weak"], absent, self.applies()),
            sample=2 * _EXTRA,
            exclude=labelled,
        )
        fit_head(OnnxScorer(output), labelled, extra=extra).save(head)

    def calibration(
        self, scorer: PairScorer, mean: Path, dev: Task, cosines: FloatArray
    ) -> Calibration:
        """Fit scores on rows of all kinds, as many of each.

        Captions have the scores of the model made here, calibrated on cosines of runs that had not
        seen them; of the other kinds no model has seen a row.
        """
        captions = fit_calibration(cosines, dev.gold).apply(_raw(load_scorer(str(mean)), dev))
        kinds = [(_raw(scorer, dev), captions)]
        for path in self.files.calibration:
            task = load_task(path, require_labels=True).labelled()
            kinds.append((_raw(scorer, task), task.gold))
        draw, most = np.random.default_rng(0), max(len(raw) for raw, _ in kinds)
        rows = [draw.permutation(np.resize(np.arange(len(raw)), most)) for raw, _ in kinds]
        return fit_calibration(
            np.concatenate([raw[at] for (raw, _), at in zip(kinds, rows, strict=True)]),
            np.concatenate([gold[at] for (_, gold), at in zip(kinds, rows, strict=True)]),
        )


def _save_vectors(vectors: FloatArray, output: Path) -> None:
    with replacing(output) as partial, partial.open("wb") as stream:
        np.save(stream, vectors.astype(np.float16))


def _raw(scorer: PairScorer, task: Task) -> FloatArray:
    return scorer.score(task.sentences1, task.sentences2, task.conditions, scale="raw")


def _begin(files: DefaultModelFiles, work: Path, weak: WeakSettings) -> None:
    for path in files.paths:
        if not path.is_file():
            raise InputError(f"{path} is missing, and the default model is made from it.")
    facts = {**files.to_dict(), "weak": weak.model_dump()}
    known = work / "inputs.json"
    if not known.is_file():
        work.mkdir(parents=True, exist_ok=True)
        write_text(known, json.dumps(facts, indent=2) + "\n")
    elif json.loads(known.read_text(encoding="utf-8")) != json.loads(json.dumps(facts)):
        raise InputError(
            f"{work} holds a model that was begun with other files or settings ({known.name} "
            "names them). Give another folder with --runs, or remove that one."
        )
