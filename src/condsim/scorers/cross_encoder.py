"""Cross-encoders: both sentences and the condition in one sequence. Needs the ``train`` extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from condsim.encoders import Order, check_order, cross_encoder_pairs
from condsim.scorers.calibration import Calibration
from condsim.scorers.inputs import PairScorer, Rows, Scale, rescaled
from condsim.types import FloatArray

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


class CrossEncoderScorer(PairScorer):
    """Scores by a cross-encoder's one output, the raw score.

    Without conditions the input is (sentence1, sentence2), whatever the order; that is for a model
    trained without them.

    Attributes:
        name: Short name, shown in tables.
        model: The cross-encoder, not a copy.
        order: Whether the sentences or the condition come first.
        calibration: From the output to a score in [0, 1]; if None, scores are the outputs.
    """

    def __init__(
        self,
        model: CrossEncoder,
        *,
        name: str,
        order: Order = "sentence-first",
        calibration: Calibration | None = None,
        batch_size: int = 32,
    ) -> None:
        """Wraps a loaded model with one output; scores ``batch_size`` rows at once.

        Raises:
            InputError: If the order is unknown.
            ModelError: If the model's tokenizer puts nothing between two texts.
        """
        from condsim.encoders import pair_separator

        check_order(order)
        self.model, self.name = model, name
        self.order: Order = order
        self.calibration = calibration
        self._batch_size = batch_size
        self._separator = pair_separator(model.tokenizer)

    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        texts = self._texts(rows)
        outputs = (
            self.model.predict(texts, batch_size=self._batch_size, show_progress_bar=False)
            if texts
            else ()
        )
        raw = np.asarray(outputs, dtype=np.float32).reshape(len(texts))
        return rescaled(raw, self.calibration, scale)

    def _texts(self, rows: Rows) -> list[tuple[str, str]]:
        """The two texts of each input: the two sentences where there are no conditions."""
        sentences1, sentences2 = rows.sentences
        if rows.conditions is None:
            return list(zip(sentences1, sentences2, strict=True))
        pairs = cross_encoder_pairs(
            sentences1,
            sentences2,
            rows.conditions,
            separator=self._separator,
            order=self.order,
        )
        return [(first, second) for first, second in pairs]
