"""A run from raw text to a surrogate: stages in folders, each made once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, get_args

from condsim.cache import sole_process
from condsim.console import Progress, silent
from condsim.contexts.coherence.training import CoherenceReport, train_coherence
from condsim.contexts.corpus.preparing import prepare_corpus
from condsim.contexts.corpus.reading import find_inputs
from condsim.contexts.corpus.stored import Corpus, document_starts, held_out_documents
from condsim.contexts.corpus.vocabulary import CorpusTokens, Vocabulary, learn_vocabulary
from condsim.contexts.generator.training import GeneratorReport, train_generators
from condsim.contexts.harvest.harvesting import Engine, build_single_index, harvest, splits_of
from condsim.contexts.harvest.stored import MANIFEST as HARVEST_MANIFEST, Harvest
from condsim.contexts.index.retrieval import TfidfIndex
from condsim.contexts.opened import (
    COHERENCE,
    CORPUS,
    GENERATORS,
    HARVEST,
    INDEX,
    RECIPE,
    SURROGATE,
    VOCABULARY,
    OpenedRun,
    open_pipeline,
)
from condsim.contexts.recipe import ContextsRecipe, load_contexts_recipe, save_contexts_recipe
from condsim.contexts.scoring.selection import Cost, expected_distinct
from condsim.contexts.surrogate import new_backbone, surrogate_recipe, write_training_pairs
from condsim.errors import InputError
from condsim.io import check_folder, sha256_of, write_text
from condsim.model.backbone import resolve_backbone
from condsim.training.folder import FinishedRun
from condsim.training.run import run_or_resume

Stage = Literal["corpus", "index", "coherence", "generators", "origin", "harvest", "surrogate"]
STAGES: tuple[Stage, ...] = get_args(Stage)

_LEAST_PAIRS = 300  # of which three are dev pairs, without which no surrogate can be judged

_USED_BY = {  # the file that shows that a section of the recipe was used, so it may not change
    "inputs": f"{CORPUS}/manifest.json",
    "corpus": f"{CORPUS}/manifest.json",
    "vocabulary": f"{VOCABULARY}/settings.json",
    "index": f"{INDEX}/manifest.json",
    "coherence": f"{COHERENCE}/settings.json",
    "generators": f"{GENERATORS}/settings.json",
}


class Pipeline:
    """The stages of a run. Each makes those it needs and opens what is already on disk.

    Attributes:
        folder: Folder of the run.
        recipe: What it is made of.
    """

    def __init__(
        self,
        folder: Path,
        recipe: ContextsRecipe,
        *,
        until: Stage = "surrogate",
        progress: Progress = silent,
    ) -> None:
        """Checks all that can be checked in advance; writes nothing.

        Args:
            until: The last stage that will be asked for.
            progress: Called with each stage, what is done and the total.

        Raises:
            InputError: If the folder holds something else, or what another recipe made; if an input
                is missing; or if a later stage could not be made by this recipe.
            ModelError: If the folder of a backbone does not exist.
        """
        self.folder, self.recipe = folder, recipe
        self._until, self._progress = STAGES.index(until), progress
        self._inputs = [Path(path) for path in recipe.inputs]
        size = f"{recipe.surrogate.width}x{recipe.surrogate.layers}"
        self._backbone = folder / f"backbone-{size}-{recipe.surrogate.embeddings}"
        check_folder(folder, what="run of contexts", own=[RECIPE])
        if (folder / RECIPE).is_file():
            _check_unchanged(folder, recipe, until=until)
        find_inputs(self._inputs)
        if recipe.generators.backbone is not None:
            resolve_backbone(recipe.generators.backbone)  # may be a folder that does not exist
        if until == "surrogate":
            self._check_surrogate()

    @contextmanager
    def begun(self) -> Iterator[Pipeline]:
        """Makes the folder, keeps other processes out of it and writes the recipe; yields this.

        Raises:
            InputError: If another process makes this run, or the folder cannot be written.
        """
        with sole_process(self.folder):
            save_contexts_recipe(self.recipe, self.folder / RECIPE)
            yield self

    @cached_property
    def corpus(self) -> Corpus:
        """The sentences (stage 1).

        Raises:
            InputError: Such as for an input file that changed since.
        """
        self._progress(CORPUS, 0, 0)
        made = prepare_corpus(
            self._inputs,
            self.folder / CORPUS,
            settings=self.recipe.corpus,
            progress=partial(self._progress, CORPUS),
        )
        # A corpus that is too small is refused before anything else is made of it.
        if self._until >= STAGES.index("harvest"):
            splits_of(made)
        if self._until >= STAGES.index("coherence"):
            held_out_documents(document_starts(made), share=0.5, seed=0)
        return made

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
        folder, least = self.folder / INDEX, self.recipe.index.min_df
        total = self.corpus.counts.chunks
        made = TfidfIndex.build(
            self.corpus.chunk_texts(),
            folder,
            revision=self.corpus.revision,
            min_df=least,
            progress=lambda chunks: self._progress(INDEX, chunks, total),
        )
        if not self.corpus.has_context.all():
            self._progress("index of single sentences", 0, 0)
            build_single_index(self.corpus, folder, min_df=least)
        return made

    @cached_property
    def coherence(self) -> CoherenceReport | None:
        """Trains the coherence model (stage 2); None if the recipe gives its term the weight 0."""
        if "coherence" not in self.recipe.scoring.weights.used:
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
        """Trains the generators (stage 3); None if the recipe gives their terms the weight 0."""
        if not set(self.recipe.scoring.weights.used) - {"coherence"}:
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
    def origin(self) -> OpenedRun:
        """The origin model (stages 5 and 6); from now on the folder of the run is one."""
        _ = self.corpus, self.index, self.coherence, self.generators
        return OpenedRun(self.folder, self.recipe, progress=self._progress)

    def harvest_cost(self) -> Cost | None:
        """The cost of the pairs still to be harvested, timed on a few sentences; None if none."""
        settings = self.recipe.harvest
        missing = Harvest(self.folder / HARVEST, settings, {}).missing()
        if not missing:
            return None
        sizes = [settings.pairs_of(number) for number in missing]
        # The contexts of a sentence are chosen once in a shard, however often it was drawn.
        sentences = sum(expected_distinct(2 * size, of=len(self.corpus)) for size in sizes)
        return self.origin.scorer.cost(sentences=sentences, pairs=sum(sizes))

    def harvest(self, engine: Engine | None = None) -> Harvest:
        """Harvests pairs (stage 7) by an engine, this process by default, or goes on with it."""
        origin = self.origin
        _ = origin.scorer  # sentence vectors are computed here, whoever scores
        folder = self.folder.resolve()  # workers may have another working directory
        return harvest(
            self.folder / HARVEST,
            self.recipe.harvest,
            partial(open_pipeline, folder) if engine else lambda: origin,
            identity=origin.identity,
            engine=engine,
            progress=partial(self._progress, HARVEST),
        )

    def surrogate(self, made: Harvest) -> FinishedRun | None:
        """Trains the surrogate (stage 8), or reads the finished one.

        Returns:
            The run; None in a process that is not the main one of several.

        Raises:
            InputError: If the folder holds a surrogate of another harvest.
        """
        settings = self.recipe.surrogate
        if settings.backbone is None:
            new_backbone(self.vocabulary, self._tokens, self._backbone, settings)
        files = self._training_pairs(made)
        name = f"{self.recipe.name} surrogate"
        recipe = surrogate_recipe(settings, name=name, files=files, backbone=self._backbone)
        run = run_or_resume(recipe, self.folder / SURROGATE)
        if run is not None and run.train_revision != sha256_of(files["train"])[:12]:
            raise InputError(
                f"The surrogate in {run.folder} was trained on another harvest than the one in "
                f"{made.folder}. Remove it to train anew."
            )
        return run

    def _tokens(self) -> CorpusTokens:
        """The corpus as tokens, for a new backbone."""
        self._progress("token vectors", 0, 0)
        return CorpusTokens.build(self.corpus, self.vocabulary)

    def _check_surrogate(self) -> None:
        if self.recipe.harvest.pairs < _LEAST_PAIRS:
            raise InputError(
                f"'harvest.pairs' must be at least {_LEAST_PAIRS} to train a surrogate: one pair "
                f"in a hundred is a dev pair. Got {self.recipe.harvest.pairs}; --until harvest "
                "stops before the surrogate."
            )
        if self.recipe.surrogate.backbone is not None:
            resolve_backbone(self.recipe.surrogate.backbone)
        surrogate_recipe(
            self.recipe.surrogate,
            name=self.recipe.name,
            files=dict.fromkeys(("train", "dev", "test"), self.folder),
            backbone=self._backbone,
        )

    def _training_pairs(self, made: Harvest) -> dict[str, Path]:
        """The files of `write_training_pairs`, written once for a harvest."""
        folder = self.folder / "pairs"
        record, revision = folder / "files.json", made.revision
        if record.is_file():
            known = json.loads(record.read_text(encoding="utf-8"))
            if known.get("harvest") == revision:
                return {split: folder / name for split, name in known["files"].items()}
        self._progress("training pairs", 0, 0)
        files = write_training_pairs(made, folder)
        names = {split: file.name for split, file in files.items()}
        write_text(record, json.dumps({"harvest": revision, "files": names}))
        return files


def _check_unchanged(folder: Path, wanted: ContextsRecipe, *, until: Stage) -> None:
    """Refuses a recipe that differs from the one that made the folder."""
    kept = load_contexts_recipe(folder / RECIPE)
    changed = [
        section
        for section, file in _USED_BY.items()
        if getattr(kept, section) != getattr(wanted, section) and (folder / file).exists()
    ]
    if STAGES.index(until) >= STAGES.index("harvest"):
        if (folder / HARVEST / HARVEST_MANIFEST).exists():
            made = Harvest.open(folder / HARVEST)
            harvested = made.changes(wanted.harvest, wanted.scored_by)
            changed += [section for section in harvested if section not in changed]
        surrogate = (folder / SURROGATE / "recipe.yaml").exists()
        if surrogate and kept.surrogate != wanted.surrogate:
            changed.append("surrogate")
    if changed:
        raise InputError(
            f"{folder} holds a run of another recipe: {', '.join(map(repr, changed))} changed. "
            "Give another folder, or that recipe."
        )
