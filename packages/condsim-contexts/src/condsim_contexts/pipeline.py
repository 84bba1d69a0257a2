"""A run from raw text to a surrogate: stages in folders, each made once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from condsim.cache import check_folder, check_unchanged, sole_process
from condsim.console import Progress, silent
from condsim.errors import InputError
from condsim.io import write_text
from condsim.model.builders import resolve_backbone
from condsim.paths import sha256_of
from condsim.training.folder import FinishedRun
from condsim.training.run import run_or_resume
from condsim_contexts.coherence import CoherenceReport, train_coherence
from condsim_contexts.corpus import Corpus, prepare_corpus
from condsim_contexts.generators import GeneratorReport, train_generators
from condsim_contexts.harvest import (
    HARVEST_MANIFEST,
    SPLITS,
    Harvest,
    build_single_index,
    harvest_pairs,
    splits_of,
)
from condsim_contexts.index import TfidfIndex
from condsim_contexts.origin import ContextsRun, Cost, OriginScorer
from condsim_contexts.recipe import (
    COHERENCE,
    CORPUS,
    GENERATORS,
    HARVEST,
    INDEX,
    RECIPE,
    SURROGATE,
    VOCABULARY,
    ContextsRecipe,
    load_contexts_recipe,
    save_contexts_recipe,
)
from condsim_contexts.sentences import find_inputs
from condsim_contexts.surrogate import new_backbone, surrogate_recipe, write_training_pairs
from condsim_contexts.tokens import CorpusTokens, Vocabulary, learn_vocabulary

Stage = Literal["corpus", "index", "coherence", "generators", "origin", "harvest", "surrogate"]
STAGES: tuple[Stage, ...] = get_args(Stage)

# Three of them are dev pairs, without which no surrogate can be judged.
_MIN_SURROGATE_PAIRS = 300

# A section of the recipe may not change once the file that was made from it exists.
_FILE_OF_SECTION = {
    "inputs": f"{CORPUS}/manifest.json",
    "corpus": f"{CORPUS}/manifest.json",
    "vocabulary": f"{VOCABULARY}/settings.json",
    "index": f"{INDEX}/manifest.json",
    "coherence": f"{COHERENCE}/settings.json",
    "generators": f"{GENERATORS}/settings.json",
}


class Pipeline(ContextsRun):
    """The stages of a run, each a property or method that first makes those it needs.

    A stage that is already on disk is opened. `ContextsRun` only opens.
    """

    def __init__(
        self,
        folder: Path,
        recipe: ContextsRecipe,
        *,
        until: Stage = "surrogate",
        progress: Progress = silent,
    ) -> None:
        """Check all that can be checked in advance, up to the last stage; nothing is written."""
        super().__init__(folder, recipe, progress=progress)
        self._stages = STAGES[: STAGES.index(until) + 1]
        self._inputs = [Path(path) for path in recipe.inputs]
        size = f"{recipe.surrogate.width}x{recipe.surrogate.layers}"
        self._backbone = folder / f"backbone-{size}-{recipe.surrogate.embeddings}"
        check_folder(folder, subject="run of contexts", own=[RECIPE])
        if (folder / RECIPE).is_file():
            self._check_unchanged()
        find_inputs(self._inputs)
        if until == "surrogate":
            if recipe.harvest.pairs < _MIN_SURROGATE_PAIRS:
                raise InputError(
                    f"'harvest.pairs' must be at least {_MIN_SURROGATE_PAIRS} to train a "
                    "surrogate, because one pair in a hundred is a dev pair; got "
                    f"{recipe.harvest.pairs}. --until harvest stops before the surrogate."
                )
            surrogate_recipe(recipe, files=dict.fromkeys(SPLITS, folder), backbone=self._backbone)
        # Where a backbone is a folder, it must exist.
        backbones = [recipe.generators.backbone]
        if until == "surrogate":
            backbones.append(recipe.surrogate.backbone)
        for backbone in filter(None, backbones):
            resolve_backbone(backbone)

    @contextmanager
    def locked(self) -> Iterator[Pipeline]:
        """Create the folder, lock it against other processes and write the recipe."""
        with sole_process(self.folder):
            save_contexts_recipe(self.recipe, self.folder / RECIPE)
            yield self

    def run(self) -> Iterator[str]:
        """Make the stages in their order, or open those on disk; yield a line about each."""
        for stage in self._stages:
            if stage == "harvest" and (cost := self.harvest_cost()) is not None:
                yield f"harvest, to be done: {cost}"
            yield self._make(stage)

    def _make(self, stage: Stage) -> str:
        """Make or open a stage by the property of its name; return the line about it."""
        match stage:
            case "corpus":
                return self.corpus.counts.summary()
            case "index":
                return f"index: {len(self.index):,} chunks"
            case "coherence" | "generators":
                report = self.coherence if stage == "coherence" else self.generators
                return report.summary() if report else f"{stage}: not used, its weight is 0"
            case "origin":
                # The first access computes the sentence vectors.
                _ = self.scorer
                return f"origin: {self.folder}, for condsim evaluate --model"
            case "harvest":
                return self.harvest().summary()
            case "surrogate":
                finished = self.surrogate(self.harvest())
                if finished is None:
                    return "surrogate: another process trains it"
                spearman = finished.report.model.metrics["spearman"].value
                return (
                    f"surrogate: {finished.folder}; Spearman {spearman:.1f} with the origin on "
                    f"{finished.report.valid_rows} dev pairs"
                )

    @cached_property
    def corpus(self) -> Corpus:
        """The sentences (stage 1)."""
        self._progress(CORPUS, 0, 0)
        corpus = prepare_corpus(
            self._inputs,
            self.folder / CORPUS,
            settings=self.recipe.corpus,
            progress=lambda sentences: self._progress(CORPUS, sentences, 0),
        )
        # These calls reject a corpus that is too small before the next stage starts.
        if "harvest" in self._stages:
            splits_of(corpus)
        if "coherence" in self._stages:
            corpus.held_out_documents(share=0.5, seed=0)
        return corpus

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer."""
        return learn_vocabulary(
            self.corpus,
            self.folder / VOCABULARY,
            **dict(self.recipe.vocabulary),
            progress=partial(self._progress, VOCABULARY),
        )

    @cached_property
    def index(self) -> TfidfIndex:
        """The TF-IDF index (stage 4)."""
        folder, min_df = self.folder / INDEX, self.recipe.index.min_df
        total = self.corpus.counts.chunks
        index = TfidfIndex.build(
            self.corpus.chunk_texts(),
            folder,
            revision=self.corpus.revision,
            min_df=min_df,
            progress=lambda chunks: self._progress(INDEX, chunks, total),
        )
        build_single_index(self.corpus, folder, min_df=min_df)
        return index

    @cached_property
    def coherence(self) -> CoherenceReport | None:
        """Report of the coherence model (stage 2); None if its term has the weight 0."""
        if not self.recipe.uses_coherence:
            return None
        return train_coherence(
            self.corpus,
            self.vocabulary,
            self.folder / COHERENCE,
            self.recipe.coherence,
            progress=partial(self._progress, COHERENCE),
        )

    @cached_property
    def generators(self) -> GeneratorReport | None:
        """Report of the generators (stage 3); None if their terms have the weight 0."""
        if not self.recipe.uses_generators:
            return None
        return train_generators(
            self.corpus,
            self.vocabulary,
            self.folder / GENERATORS,
            self.recipe.generators,
            tasks=self.recipe.scoring.weights.used,
            progress=partial(self._progress, GENERATORS),
        )

    @cached_property
    def scorer(self) -> OriginScorer:
        """The origin model (stages 5 and 6); from now on the folder of the run is one."""
        _ = self.corpus, self.index, self.coherence, self.generators
        return super().scorer

    def harvest_cost(self) -> Cost | None:
        """Estimate the cost of the pairs still to be harvested; None if there are none."""
        settings = self.recipe.harvest
        missing = Harvest(self.folder / HARVEST, settings, {}).missing()
        if not missing:
            return None
        sizes = np.array([settings.pairs_of(number) for number in missing])
        # The contexts of a sentence are chosen once in a shard, however often it was drawn: the
        # expected number of different ones among those drawn at random.
        rows = len(self.corpus)
        sentences = int((-rows * np.expm1(2 * sizes * np.log1p(-1 / rows))).round().sum())
        return self.scorer.cost(sentences=sentences, pairs=int(sizes.sum()))

    def harvest(self) -> Harvest:
        """Harvest pairs (stage 7), or continue with it."""
        return harvest_pairs(
            self.folder / HARVEST,
            self.recipe.harvest,
            lambda: self,
            identity=self.identity,
            progress=partial(self._progress, HARVEST),
        )

    def surrogate(self, harvest: Harvest) -> FinishedRun | None:
        """Train the surrogate (stage 8), or read the finished one.

        None in a process that is not the main one of several.
        """
        settings = self.recipe.surrogate
        if settings.backbone is None:
            tokens = partial(CorpusTokens.build, self.corpus, self.vocabulary)
            new_backbone(self.folder / VOCABULARY, tokens, self._backbone, settings)
        files = self._training_pairs(harvest)
        recipe = surrogate_recipe(self.recipe, files=files, backbone=self._backbone)
        run = run_or_resume(recipe, self.folder / SURROGATE)
        if run is not None and run.train_revision != sha256_of(files["train"])[:12]:
            raise InputError(
                f"The surrogate in {run.folder} was trained on another harvest than the one in "
                f"{harvest.folder}. Remove it to train again."
            )
        return run

    def _training_pairs(self, harvest: Harvest) -> dict[str, Path]:
        """Write the files of `write_training_pairs`, once for a harvest."""
        folder = self.folder / "pairs"
        names = {split: f"{split}.parquet" for split in SPLITS}
        record = json.dumps({"harvest": harvest.revision, "files": names})
        path = folder / "files.json"
        if not path.is_file() or path.read_text(encoding="utf-8") != record:
            write_training_pairs(harvest, folder)
            write_text(path, record)
        return {split: folder / name for split, name in names.items()}

    def _check_unchanged(self) -> None:
        """Refuse a recipe that differs from the one that made the folder."""
        stored, harvest = load_contexts_recipe(self.folder / RECIPE), self.folder / HARVEST
        changed = [
            section
            for section, file in _FILE_OF_SECTION.items()
            if getattr(stored, section) != getattr(self.recipe, section)
            and (self.folder / file).exists()
        ]
        if "harvest" in self._stages:
            if (harvest / HARVEST_MANIFEST).exists():
                changed += Harvest.open(harvest).changes(self.recipe.harvest, self.recipe.scored_by)
            is_trained = (self.folder / SURROGATE / "recipe.yaml").exists()
            if is_trained and stored.surrogate != self.recipe.surrogate:
                changed.append("surrogate")
        check_unchanged(self.folder, changed, subject="a run")
