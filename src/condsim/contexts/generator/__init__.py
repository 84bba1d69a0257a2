"""The generators: how probable a sentence is in a context (SSBC §3.2.2, Eq. 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.contexts.generator.backbone import (
        backbone_vocabulary as backbone_vocabulary,
        new_generator as new_generator,
    )
    from condsim.contexts.generator.data import (
        GeneratorData as GeneratorData,
        GeneratorWork as GeneratorWork,
    )
    from condsim.contexts.generator.items import (
        TASKS as TASKS,
        ItemBuilder as ItemBuilder,
        Task3 as Task3,
        length_groups as length_groups,
        ragged as ragged,
    )
    from condsim.contexts.generator.loss import (
        mean_cross_entropy as mean_cross_entropy,
        target_log_probabilities as target_log_probabilities,
    )
    from condsim.contexts.generator.pointer import Copied as Copied, CopyHead as CopyHead
    from condsim.contexts.generator.scorer import GeneratorScorer as GeneratorScorer
    from condsim.contexts.generator.settings import (
        SHAPES as SHAPES,
        GeneratorSettings as GeneratorSettings,
        Shape as Shape,
    )
    from condsim.contexts.generator.states import StateStore as StateStore
    from condsim.contexts.generator.training import (
        GeneratorReport as GeneratorReport,
        train_generators as train_generators,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "backbone": "backbone_vocabulary new_generator",
        "data": "GeneratorData GeneratorWork",
        "items": "ItemBuilder TASKS Task3 length_groups ragged",
        "loss": "mean_cross_entropy target_log_probabilities",
        "pointer": "Copied CopyHead",
        "scorer": "GeneratorScorer",
        "settings": "GeneratorSettings SHAPES Shape",
        "states": "StateStore",
        "training": "GeneratorReport train_generators",
    },
    extra="contexts",
)
