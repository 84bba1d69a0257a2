"""Training: a recipe goes in, a model folder with its card and report comes out.

Needs the ``train`` extra. The trainer, its checkpoints and multi-process training are those of
sentence-transformers and transformers; what is here is the recipe, how rows are batched, how the
best epoch is chosen, and what the finished folder holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.training.average import (
        average_models as average_models,
        average_weights as average_weights,
    )
    from condsim.training.callbacks import ProgressCallback as ProgressCallback
    from condsim.training.data import (
        MaskedScorer as MaskedScorer,
        load_plain as load_plain,
        load_train as load_train,
        plain_objective as plain_objective,
        plain_set as plain_set,
        training_set as training_set,
        used_rows as used_rows,
    )
    from condsim.training.export import (
        SAMPLES as SAMPLES,
        export_onnx as export_onnx,
        samples_of as samples_of,
    )
    from condsim.training.folder import (
        CHECKPOINTS as CHECKPOINTS,
        HISTORY as HISTORY,
        PLACE_KEYS as PLACE_KEYS,
        REPORT as REPORT,
        FinishedRun as FinishedRun,
        finished_run as finished_run,
        last_checkpoint as last_checkpoint,
        prepare_output as prepare_output,
    )
    from condsim.training.recipe import (
        Recipe as Recipe,
        load_recipe as load_recipe,
        save_recipe as save_recipe,
    )
    from condsim.training.run import (
        close_process_group as close_process_group,
        fit as fit,
        run_or_resume as run_or_resume,
    )
    from condsim.training.sampler import (
        MixedBatchSampler as MixedBatchSampler,
        PairBatchSampler as PairBatchSampler,
        batch_sampler as batch_sampler,
        group_rows as group_rows,
    )
    from condsim.training.siblings import (
        caption_groups as caption_groups,
        load_siblings as load_siblings,
        normalised as normalised,
        with_siblings as with_siblings,
    )
    from condsim.training.sweep import (
        Range as Range,
        SweepSpec as SweepSpec,
        load_sweep as load_sweep,
        point_text as point_text,
        run_sweep as run_sweep,
        to_markdown as to_markdown,
    )
    from condsim.training.trainer import Run as Run, build_run as build_run

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "average": "average_models average_weights",
        "callbacks": "ProgressCallback",
        "data": (
            "MaskedScorer load_plain load_train plain_objective plain_set training_set used_rows"
        ),
        "export": "SAMPLES export_onnx samples_of",
        "folder": (
            "CHECKPOINTS HISTORY PLACE_KEYS REPORT FinishedRun finished_run last_checkpoint "
            "prepare_output"
        ),
        "recipe": "Recipe load_recipe save_recipe",
        "run": "close_process_group fit run_or_resume",
        "sampler": "MixedBatchSampler PairBatchSampler batch_sampler group_rows",
        "siblings": "caption_groups load_siblings normalised with_siblings",
        "sweep": "Range SweepSpec load_sweep point_text run_sweep to_markdown",
        "trainer": "Run build_run",
    },
    extra="train",
)
