"""Both default models from the data files: rows, the large model, the small one taught by it.

```
rows ─► large ───────┬──────────────────► large-continued ─► averaged-large ─► condsim-large
                     ▼  (its vectors)
rows ─► taught ─► small-vectors ─► small ─► small-continued ─► averaged-small ─► condsim-minilm
```

``python -m papers default-model`` runs it. Each training is a run of ``condsim train`` by a recipe
in ``settings``, whose files are made here. A step whose output is there is skipped, and a killed
training resumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from condsim.training.averaging import average_models
from condsim.training.folder import REPORT
from condsim.training.recipe import Recipe, load_recipe
from condsim.training.run import run_or_resume
from papers.model.balanced import write_balanced
from papers.model.measured import scorer_embedder
from papers.model.mixture import write_mixture
from papers.model.plain import PlainVectors, open_encoder
from papers.model.rows import PLAIN_VECTORS, write_rows
from papers.model.shipping import LARGE, SMALL, ShippedModel, ship
from papers.model.sources import ROOT, Sources
from papers.model.teach import TAUGHT, keep_plain, teach

SETTINGS = Path(__file__).parent / "settings"
LARGE_INPUTS, SMALL_INPUTS = 80_000, 60_000
"""Inputs of a source at most, in the mixtures of the large and of the small model."""

START_SHARE = 0.3
"""Share of the weights that a model goes on from, in the mean that ships."""


@dataclass(frozen=True)
class Starts:
    """Names or folders of the models that a pipeline begins with.

    Attributes:
        large: Backbone of the large model; None if only the small one is made.
        small: Backbone of the small model, or a small model to train further.
        plain: Model whose plain vectors the small one keeps, and that says which texts are near.
    """

    large: str | None = LARGE.base
    small: str = SMALL.base
    plain: str = SMALL.base


def make_models(
    data: Path, starts: Starts, work: Path, *, settings: Path = SETTINGS
) -> Mapping[ShippedModel, Path]:
    """Make the models, or go on with them; returns the folders that ship."""
    pipeline = Pipeline(data, starts, work, settings)
    pipeline.write_rows()
    if starts.large is None:
        return {SMALL: pipeline.small_continued(starts.small)}
    large = pipeline.large(starts.large)
    small = pipeline.taught(large, starts.small)
    return {
        LARGE: pipeline.large_continued(large),
        SMALL: pipeline.small_continued(str(small)),
    }


class Pipeline:
    """The steps from data files to models, in one folder."""

    def __init__(self, data: Path, starts: Starts, work: Path, settings: Path) -> None:
        self.work, self.settings = work, settings
        self.rows = work / "rows"
        self.plain = PlainVectors(starts.plain, self.rows / PLAIN_VECTORS)
        self.sources = Sources(data, self.rows / "balanced", self.plain)

    def write_rows(self) -> None:
        """Write the rows of every source."""
        write_balanced(self.sources.data, self.sources.balanced)
        write_rows(self.sources, self.rows)

    def large(self, start: str) -> Path:
        """Train the large model, which keeps the plain vectors that it begins with."""
        files = self._mixture("large", LARGE_INPUTS)
        if not (files / "broad.csv").is_file():
            vectors = PlainVectors(start, files / "plain")
            keep_plain(self.rows, files, vectors, vectors, inputs=LARGE_INPUTS)
        return self._train("large", files, start)

    def taught(self, large: Path, start: str) -> Path:
        """Train the small model on vectors of the large one, then on labels as well."""
        files = self._mixture("small", SMALL_INPUTS)
        if not (files / f"{TAUGHT}.csv").is_file():
            teacher, student = (scorer_embedder(open_encoder(model)) for model in (large, start))
            teach(self.rows, files, teacher, student)
        vectors = self._train("small-vectors", files, start)
        return self._train("small", files, str(vectors))

    def large_continued(self, start: Path) -> Path:
        """Let the large model go on with everyday judgments, and write what ships."""
        return self._continued(LARGE, "large", self._mixture("large", LARGE_INPUTS), str(start))

    def small_continued(self, start: str) -> Path:
        """Let the small model go on from one that is trained, and write what ships."""
        files = self._mixture("small", SMALL_INPUTS)
        if not (files / "broad.csv").is_file():
            starts = PlainVectors(start, files / "start")
            keep_plain(self.rows, files, self.plain, starts, inputs=SMALL_INPUTS)
        return self._continued(SMALL, "small", files, start)

    def _continued(self, model: ShippedModel, name: str, files: Path, start: str) -> Path:
        run = self._train(f"{name}-continued", files, start)
        averaged = self.work / f"averaged-{name}"
        # What a run learns of new rows and what its start knew of old ones are both in the mean.
        if not (averaged / REPORT).is_file():
            average_models(
                [run],
                averaged,
                name=model.name,
                pretrained=start,
                pretrained_share=START_SHARE,
            )
        output = self.work / "exported" / model.name
        return ship(model, averaged, output, self.sources, self.rows)

    def _mixture(self, name: str, inputs: int) -> Path:
        files = self.work / f"mixture-{name}"
        write_mixture(self.rows, files, self.plain, inputs=inputs)
        return files

    def _train(self, name: str, files: Path, backbone: str) -> Path:
        """Train by a recipe of the settings, unless that is done."""
        recipe = load_recipe(self.settings / f"{name}.yaml")
        run_or_resume(placed(recipe, files, backbone), self.work / name)
        return self.work / name


def placed(recipe: Recipe, files: Path, backbone: str) -> Recipe:
    """Give a recipe its backbone, and the paths of the files of a mixture and of dev."""
    sources = {
        name: source.model_copy(
            update={
                "file": str(files / str(source.file)),
                "vectors": source.vectors and str(files / source.vectors),
            }
        )
        for name, source in recipe.sources.items()
    }
    places = {"train": str(files / recipe.train), "dev": str(ROOT / recipe.dev)}
    return recipe.model_copy(update={**places, "backbone": backbone, "sources": sources})
