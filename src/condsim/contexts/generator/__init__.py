"""The generators: how probable a sentence is in a context (SSBC §3.2.2, Eq. 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.contexts.generator.backbone import (
        backbone_vocabulary as backbone_vocabulary,
        new_generator as new_generator,
    )
    from condsim.contexts.generator.items import (
        ItemBuilder as ItemBuilder,
        length_groups as length_groups,
        ragged as ragged,
    )
    from condsim.contexts.generator.model import (
        ContextGenerator as ContextGenerator,
        StateStore as StateStore,
    )
    from condsim.contexts.generator.probabilities import (
        Copied as Copied,
        CopyHead as CopyHead,
        mean_cross_entropy as mean_cross_entropy,
        target_log_probabilities as target_log_probabilities,
    )
    from condsim.contexts.generator.scorer import GeneratorScorer as GeneratorScorer
    from condsim.contexts.generator.settings import (
        GENERATOR_TASKS as GENERATOR_TASKS,
        SHAPES as SHAPES,
        GeneratorSettings as GeneratorSettings,
        GeneratorTask as GeneratorTask,
        Shape as Shape,
    )
    from condsim.contexts.generator.training import (
        GeneratorData as GeneratorData,
        GeneratorReport as GeneratorReport,
        GeneratorWork as GeneratorWork,
        train_generators as train_generators,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "backbone": "backbone_vocabulary new_generator",
        "items": "ItemBuilder length_groups ragged",
        "model": "ContextGenerator StateStore",
        "probabilities": "Copied CopyHead mean_cross_entropy target_log_probabilities",
        "scorer": "GeneratorScorer",
        "settings": "GENERATOR_TASKS GeneratorSettings GeneratorTask SHAPES Shape",
        "training": "GeneratorData GeneratorReport GeneratorWork train_generators",
    },
    extra="contexts",
)
