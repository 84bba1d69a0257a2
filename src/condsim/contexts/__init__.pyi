from .coherence import CoherenceReport as CoherenceReport, CoherenceScorer as CoherenceScorer
from .corpus import (
    Corpus as Corpus,
    CorpusTokens as CorpusTokens,
    find_inputs as find_inputs,
    learn_vocabulary as learn_vocabulary,
    prepare_corpus as prepare_corpus,
)
from .generator import (
    GeneratorReport as GeneratorReport,
    GeneratorScorer as GeneratorScorer,
    new_generator as new_generator,
)
from .harvest import FORMAT as FORMAT, Engine as Engine, RayEngine as RayEngine
from .index import TfidfIndex as TfidfIndex
from .models import REPORT as REPORT
from .opened import (
    COHERENCE as COHERENCE,
    CORPUS as CORPUS,
    GENERATORS as GENERATORS,
    HARVEST as HARVEST,
    INDEX as INDEX,
    RECIPE as RECIPE,
    SURROGATE as SURROGATE,
    VOCABULARY as VOCABULARY,
    OpenedRun as OpenedRun,
    open_pipeline as open_pipeline,
)
from .recipe import (
    SPEED_KEYS as SPEED_KEYS,
    ContextsRecipe as ContextsRecipe,
    SurrogateSettings as SurrogateSettings,
    load_contexts_recipe as load_contexts_recipe,
    save_contexts_recipe as save_contexts_recipe,
)
from .run import STAGES as STAGES, Pipeline as Pipeline, Stage as Stage
from .scoring import (
    Center as Center,
    ContextTerms as ContextTerms,
    Cost as Cost,
    FittedWeights as FittedWeights,
    OriginScorer as OriginScorer,
    PairTerms as PairTerms,
    ScoringSettings as ScoringSettings,
    Selection as Selection,
    Weights as Weights,
    cost_of as cost_of,
    expected_distinct as expected_distinct,
    similarity as similarity,
)
from .settings import (
    GENERATOR_TASKS as GENERATOR_TASKS,
    SHAPES as SHAPES,
    CoherenceSettings as CoherenceSettings,
    CorpusSettings as CorpusSettings,
    GeneratorSettings as GeneratorSettings,
    GeneratorTask as GeneratorTask,
    Shape as Shape,
)
from .surrogate import (
    MAX_TOKENS as MAX_TOKENS,
    new_backbone as new_backbone,
    surrogate_recipe as surrogate_recipe,
    token_vectors as token_vectors,
    write_training_pairs as write_training_pairs,
)
