"""Any encoder as it comes, its token vectors averaged or its first one taken.

"Avg. BERT embeddings" and "BERT [CLS]" of Reimers and Gurevych (2019, Table 1) and SSBC (Table 2);
also what SimCSE without labels is measured by (its [CLS] vector). Needs the ``train`` extra.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from condsim.encoders import build_bi_encoder
from condsim.scorers.encoder import EncoderScorer

if TYPE_CHECKING:
    from condsim.encoders import Pooling

__all__ = ["transformer_scorer"]


def transformer_scorer(
    model: str,
    *,
    pooling: Pooling = "mean",
    name: str | None = None,
    device: str | None = None,
) -> EncoderScorer:
    """Makes a scorer of an encoder that was never trained for similarity.

    Args:
        model: A local folder or a Hub name: a transformers checkpoint, or a sentence-transformers
            model, of which the transformer alone is taken.
        pooling: ``mean`` over the tokens of the last layer, the special ones too; ``cls``, the
            first token; or another of `condsim.encoders.Pooling`.
        name: Short name, shown in tables; made of the two by default.
        device: Where torch runs; it chooses if None.

    Returns:
        The scorer: cosines.

    Raises:
        InputError: If the pooling is unknown.
        ModelError: If the model cannot be loaded.
        MissingExtraError: If the ``train`` extra is not installed.
    """
    encoder = build_bi_encoder(model, pooling=pooling)
    encoder.eval()
    if device is not None:
        encoder = encoder.to(device)
    return EncoderScorer(encoder, name=name or f"{pooling}:{Path(model).name}")
