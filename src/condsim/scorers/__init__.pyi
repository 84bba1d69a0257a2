from .applicability import (
    PROBE as PROBE,
    ApplicabilityHead as ApplicabilityHead,
    Embedded as Embedded,
    features as features,
    head_of as head_of,
)
from .baselines import (
    BASELINES as BASELINES,
    UNFITTED_BASELINES as UNFITTED_BASELINES,
    BertScoreScorer as BertScoreScorer,
    ConditionOnlyScorer as ConditionOnlyScorer,
    FittedBaseline as FittedBaseline,
    GloveScorer as GloveScorer,
    SentencesOnlyScorer as SentencesOnlyScorer,
    TfIdfCosineScorer as TfIdfCosineScorer,
    WordOverlapScorer as WordOverlapScorer,
    baseline as baseline,
    out_of_fold as out_of_fold,
    tokens_of as tokens_of,
)
from .calibration import (
    UNCALIBRATED as UNCALIBRATED,
    Calibration as Calibration,
    fit_calibration as fit_calibration,
)
from .embedding import EmbeddingScorer as EmbeddingScorer
from .encoder import (
    CrossEncoderScorer as CrossEncoderScorer,
    EncoderScorer as EncoderScorer,
    Numbers as Numbers,
    Precision as Precision,
    check_precision as check_precision,
    transformer_scorer as transformer_scorer,
)
from .explaining import (
    PICTURES as PICTURES,
    ExplainedText as ExplainedText,
    Explanation as Explanation,
    Occlusion as Occlusion,
    Reader as Reader,
    Word as Word,
    check_explained as check_explained,
)
from .inputs import (
    SAMPLES as SAMPLES,
    PairScorer as PairScorer,
    Rows as Rows,
    Scale as Scale,
    Texts as Texts,
    check_rows as check_rows,
    check_scale as check_scale,
    check_threshold as check_threshold,
    distinct as distinct,
    rescaled as rescaled,
    token_batches as token_batches,
)
from .onnx import (
    MODEL_FILE as MODEL_FILE,
    TOKENIZER_FILE as TOKENIZER_FILE,
    OnnxScorer as OnnxScorer,
)
from .settings import (
    CONTEXTS_FILE as CONTEXTS_FILE,
    DEFAULT_FOLDER as DEFAULT_FOLDER,
    FILE_NAME as FILE_NAME,
    Fact as Fact,
    Kind as Kind,
    Settings as Settings,
    model_folder as model_folder,
    revision_of as revision_of,
)
from .trained import (
    check_loaded as check_loaded,
    check_not_pickled as check_not_pickled,
    kind_of as kind_of,
    load_hub_model as load_hub_model,
    load_trained as load_trained,
    loading_reason as loading_reason,
)
