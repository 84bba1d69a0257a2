"""The model that ships, from the data files to the folder: weak labels, distillation, averaging.

```
captions ──► weak rows ───┐
train ──► sibling rows ───┴─► taught rows ──► first stage ──► tuned runs ──► mean ──► int8, head
train ──► teacher (large) ─┘  and train        on train
                              with plain pairs  with plain pairs
```

Each step is kept in the folder and skipped where it is finished; a killed training goes on.
`docs/experiments.md` says what each step brings.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from condsim.applicability import fit_head, load_extra
from condsim.construction import REGISTRY, WeakSettings, build_weak, teach_file
from condsim.encoders import resolve_backbone
from condsim.errors import InputError
from condsim.evaluation import Report
from condsim.files import sha256_of, write_text
from condsim.loading import load_scorer
from condsim.progress import Progress, silent
from condsim.scorers import OnnxScorer
from condsim.tasks import load_applicability
from condsim.training import (
    REPORT,
    Recipe,
    average_models,
    export_onnx,
    load_recipe,
    run_or_resume,
    samples_of,
)
from experiments.columns import DEFAULT_BACKBONE
from experiments.default_data import PLAIN, write_joined, write_pairs, write_sibling_rows
from experiments.naming import recipe_file
from experiments.options import Options, data_files, data_path

WEAK = WeakSettings(
    rows=60_000, absent=10_000, k=24, sample=60_000, text_encoder="words", answers=False
)
"""How the weak rows are made."""

_LOGGER = logging.getLogger("condsim")
_NAME = "condsim-minilm"
_GIVEN = {"weak": 0.4, "sibling": 0.5}  # share in a taught label of the one that was there
_ALSO = "captions, labelled by functions and the teacher; NLI pairs, scored by the base model"
_EXTRA = 10_000  # weak rows the applicability head is fitted on


@dataclass(frozen=True)
class DefaultModelFiles:
    """What the model is made from.

    Attributes:
        train: C-STS rows to train on.
        dev: C-STS rows that epochs are chosen and scores calibrated on.
        captions: Files with the columns ``image_id`` and ``caption``.
        nli: Folder of the NLI files that plain pairs are drawn from.
        backbone: Hub name or folder.
        teacher: Hub name or folder of the backbone of the teacher, which is trained on ``train``
            and labels rows beside the functions; a larger one than ``backbone``.
        seeds: Seeds of the runs that are averaged.
    """

    train: Path
    dev: Path
    captions: tuple[Path, ...]
    nli: Path
    backbone: str = DEFAULT_BACKBONE.model
    teacher: str = "sentence-transformers/all-mpnet-base-v2"
    seeds: tuple[int, ...] = (1, 2)

    def __post_init__(self) -> None:
        """Refuses a mean of fewer than two runs."""
        if len(self.seeds) < 2:
            raise InputError(f"The model is a mean of two runs or more. Got {len(self.seeds)}.")

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files that are read."""
        plain = (self.nli / name for name, _ in PLAIN)
        return (self.train, self.dev, *self.captions, *plain)

    def to_dict(self) -> dict[str, object]:
        """What must not change while a model is half made: revisions of files, and settings."""
        return {
            "files": {f"{p.parent.name}/{p.name}": sha256_of(p)[:12] for p in self.paths},
            "backbone": self.backbone,
            "teacher": self.teacher,
            "seeds": list(self.seeds),
            "given": _GIVEN,
        }


def default_files(options: Options, *, teacher: str | None = None) -> DefaultModelFiles:
    """Finds what the model is made from below the folder of the data sets."""
    if len(options.backbones) > 1:
        raise InputError(f"default-model has one --backbone. Got {len(options.backbones)}.")
    captions = data_path(options, "captions")
    found = tuple(sorted(captions.glob("*.tsv.gz")))
    if not found:
        raise InputError(f"{captions} has no files of captions (*.tsv.gz).")
    data = data_files("c-sts", options)
    files = DefaultModelFiles(
        train=data.train,
        dev=data.dev,
        captions=found,
        nli=data_path(options, "nli"),
        backbone=options.backbones[0].model,
    )
    if teacher is not None:
        files = replace(files, teacher=teacher)
    if options.seeds is not None:
        files = replace(files, seeds=tuple(range(1, options.seeds + 1)))
    return files


def make_default_model(
    files: DefaultModelFiles,
    work: Path,
    progress: Progress = silent,
    *,
    weak: WeakSettings = WEAK,
) -> Report:
    """Makes the model, or goes on with it.

    The folder ``exported`` is what ships inside the package, ``mean`` its float32 form.
    """
    _begin(files, work, weak)
    making = _Making(files, work, progress)
    weak_rows, absent = making.weak_rows(weak)
    pairs = making.step("pairs.csv", lambda output: write_pairs(files.nli, weak_rows, output))
    plain = str(making.taught(pairs, "plain.csv", resolve_backbone(files.backbone), given=0))
    siblings = making.step(
        "sibling.csv",
        lambda output: write_sibling_rows(files.captions, files.train, files.dev, output),
    )
    teacher = making.run("teacher", making.recipe("mpnet/teacher", files.teacher))
    taught = [
        making.taught(rows, "taught-" + rows.name, teacher, given=_GIVEN[rows.stem])
        for rows in (weak_rows, siblings)
    ]
    joined = making.step("joined.csv", lambda output: write_joined(taught, files.train, output))
    recipe = making.recipe("minilm/weak", files.backbone).replaced(train=str(joined), plain=plain)
    first = making.run("first", recipe)
    recipe = making.recipe("minilm/finetune", str(first)).replaced(plain=plain)
    runs = [making.run(f"tuned-{seed}", recipe.replaced(seed=seed)) for seed in files.seeds]
    mean = making.mean(runs)
    making.export(mean, extra=(weak_rows, absent))
    return Report.from_json(mean / "report.json")


@dataclass(frozen=True)
class _Making:
    """The steps, each skipped where it is finished."""

    files: DefaultModelFiles
    work: Path
    progress: Progress = silent

    def weak_rows(self, settings: WeakSettings) -> tuple[Path, Path]:
        weak, absent = self.work / "weak.csv", self.work / "absent.csv"
        if not absent.is_file():  # written last
            build_weak(
                self.files.captions,
                weak,
                REGISTRY,
                settings=settings,
                cache=self.work / "weak.cache",
                progress=self.progress,
                exclude=(self.files.dev,),
                like=self.files.train,
                absent_output=absent,
            )
        return weak, absent

    def step(self, name: str, make: Callable[[Path], None]) -> Path:
        output = self.work / name
        if not output.is_file():
            _LOGGER.info("%s", name)
            make(output)
        return output

    def taught(self, rows: Path, name: str, teacher: Path | str, *, given: float) -> Path:
        def teach(output: Path) -> None:
            scorer = load_scorer(str(teacher))
            teach_file(rows, output, [scorer], given=given, progress=self.progress)

        return self.step(name, teach)

    def recipe(self, name: str, backbone: str) -> Recipe:
        return load_recipe(recipe_file(f"{name}.yaml")).replaced(
            train=str(self.files.train), dev=str(self.files.dev), backbone=backbone
        )

    def run(self, name: str, recipe: Recipe) -> Path:
        folder = self.work / name
        if not (folder / REPORT).is_file():
            _LOGGER.info("%s", name)
        run_or_resume(recipe, folder)
        return folder

    def mean(self, runs: Sequence[Path]) -> Path:
        mean, partial = self.work / "mean", self.work / "mean.partial"
        if not mean.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
            average_models(runs, partial, name=_NAME, base_model=self.files.backbone, float16=True)
            partial.rename(mean)
        return mean

    def export(self, mean: Path, *, extra: tuple[Path, Path]) -> None:
        output = self.work / "exported"
        head = output / "applicability.json"
        if head.is_file():  # written last
            return
        facts = {"also_trained_on": _ALSO, "teacher": self.files.teacher}
        export_onnx(mean, output, samples=samples_of(self.files.train), facts=facts)
        labelled = load_applicability(self.files.dev)
        more = load_extra(extra, sample=_EXTRA, exclude=labelled)
        fit_head(OnnxScorer(output), labelled, extra=more).save(head)


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
