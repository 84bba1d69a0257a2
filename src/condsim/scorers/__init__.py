"""What measures: everything that turns ``(sentences1, sentences2, conditions)`` into scores.

`condsim.loading.load_scorer` finds the scorer of a model; the modules beside it hold one kind
each. Nothing is imported here, so that the light scorers do not wait for the heavy ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.scorers.applicability import (
        PROBE as PROBE,
        ApplicabilityHead as ApplicabilityHead,
        Embedded as Embedded,
        features as features,
        head_of as head_of,
    )
    from condsim.scorers.baselines import (
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
    )
    from condsim.scorers.calibration import (
        UNCALIBRATED as UNCALIBRATED,
        Calibration as Calibration,
        fit_calibration as fit_calibration,
    )
    from condsim.scorers.cross_encoder import CrossEncoderScorer as CrossEncoderScorer
    from condsim.scorers.embedding import EmbeddingScorer as EmbeddingScorer
    from condsim.scorers.encoder import (
        EncoderScorer as EncoderScorer,
        Numbers as Numbers,
        Precision as Precision,
        check_precision as check_precision,
        numbers_on as numbers_on,
        transformer_scorer as transformer_scorer,
    )
    from condsim.scorers.inputs import (
        PairScorer as PairScorer,
        Rows as Rows,
        Scale as Scale,
        Texts as Texts,
        check_rows as check_rows,
        check_scale as check_scale,
        distinct as distinct,
        rescaled as rescaled,
        token_batches as token_batches,
    )
    from condsim.scorers.onnx import (
        MODEL_FILE as MODEL_FILE,
        TOKENIZER_FILE as TOKENIZER_FILE,
        OnnxScorer as OnnxScorer,
    )
    from condsim.scorers.settings import (
        CONTEXTS_FILE as CONTEXTS_FILE,
        DEFAULT_FOLDER as DEFAULT_FOLDER,
        FILE_NAME as FILE_NAME,
        Fact as Fact,
        Kind as Kind,
        Settings as Settings,
        packaged_folder as packaged_folder,
        revision_of as revision_of,
    )
    from condsim.scorers.trained import (
        kind_of as kind_of,
        load_hub_model as load_hub_model,
        load_trained as load_trained,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "applicability": "ApplicabilityHead Embedded PROBE features head_of",
        "baselines": (
            "BASELINES BertScoreScorer ConditionOnlyScorer FittedBaseline GloveScorer "
            "SentencesOnlyScorer TfIdfCosineScorer UNFITTED_BASELINES WordOverlapScorer "
            "baseline out_of_fold"
        ),
        "calibration": "Calibration UNCALIBRATED fit_calibration",
        "cross_encoder": "CrossEncoderScorer",
        "embedding": "EmbeddingScorer",
        "encoder": "EncoderScorer Numbers Precision check_precision numbers_on transformer_scorer",
        "inputs": (
            "PairScorer Rows Scale Texts check_rows check_scale distinct rescaled token_batches"
        ),
        "onnx": "MODEL_FILE OnnxScorer TOKENIZER_FILE",
        "settings": (
            "CONTEXTS_FILE DEFAULT_FOLDER FILE_NAME Fact Kind Settings packaged_folder revision_of"
        ),
        "trained": "kind_of load_hub_model load_trained",
    },
    extra="train",
)
