from .counts import CountsGenerator as CountsGenerator
from .items import ItemBuilder as ItemBuilder, length_groups as length_groups, ragged as ragged
from .model import (
    ContextGenerator as ContextGenerator,
    StateStore as StateStore,
    backbone_vocabulary as backbone_vocabulary,
    new_generator as new_generator,
)
from .probabilities import (
    Copied as Copied,
    CopyHead as CopyHead,
    mean_cross_entropy as mean_cross_entropy,
    target_log_probabilities as target_log_probabilities,
)
from .scorer import GeneratorScorer as GeneratorScorer
from .training import (
    GeneratorData as GeneratorData,
    GeneratorReport as GeneratorReport,
    GeneratorWork as GeneratorWork,
    train_generators as train_generators,
)
from .translation import TranslationGenerator as TranslationGenerator
