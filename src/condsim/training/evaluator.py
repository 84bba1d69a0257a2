"""The dev score that chooses the best epoch."""

from __future__ import annotations

import numpy as np
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.evaluation.evaluator import BaseEvaluator

from condsim.evaluation.correlation import spearman
from condsim.scorers.cross_encoder import CrossEncoderScorer
from condsim.scorers.encoder import EncoderScorer
from condsim.tasks import Triplets
from condsim.training.data import DevData, dev_pairs
from condsim.training.inputs import MaskedScorer
from condsim.training.recipe import Recipe

__all__ = ["DevEvaluator", "Model", "scorer_of"]

Model = SentenceTransformer | CrossEncoder


def scorer_of(model: Model, recipe: Recipe) -> MaskedScorer:
    """Makes a scorer of a model in memory; it gives raw, uncalibrated similarities.

    Args:
        model: A bi-, tri- or cross-encoder.
        recipe: The recipe it is trained by.

    Returns:
        A scorer over the model itself, not a copy, that sees the inputs the recipe says.
    """
    scorer: EncoderScorer | CrossEncoderScorer
    if isinstance(model, SentenceTransformer):
        scorer = EncoderScorer(model, name=recipe.name, order=recipe.order)
    else:
        scorer = CrossEncoderScorer(model, name=recipe.name, order=recipe.order)
    return MaskedScorer(scorer, recipe.inputs)


class DevEvaluator(BaseEvaluator):
    """Spearman on the labelled rows of the dev file, as a sentence-transformers evaluator.

    Of triplets it is the Spearman of their pairs, and the epoch is chosen by their accuracy.

    Attributes:
        metric: Name of the figure that the epoch is chosen by.
    """

    def __init__(self, dev: DevData, recipe: Recipe) -> None:
        """Keeps the labelled rows of ``dev``."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._triplets = dev if isinstance(dev, Triplets) else None
        self.metric = self.primary_metric = "accuracy" if self._triplets else "spearman"
        self._recipe = recipe
        self._dev = dev_pairs(dev).labelled()

    def __call__(
        self,
        model: Model,  # type: ignore[override]
        output_path: str | None = None,
        epoch: int = -1,
        steps: int = -1,
    ) -> dict[str, float]:
        """Scores the rows.

        Args:
            model: The model as it stands.
            output_path: Not used; the report is written once, at the end.
            epoch: Not used.
            steps: Not used.

        Returns:
            ``{"spearman": value in [-1, 1]}``, 0 when every score is the same; of triplets also
            ``"accuracy"`` in [0, 1].
        """
        dev = self._dev
        scores = scorer_of(model, self._recipe).score(
            dev.sentences1, dev.sentences2, dev.conditions, scale="raw"
        )
        figures = {"spearman": float(np.nan_to_num(spearman(scores, dev.gold)))}
        if self._triplets:
            figures["accuracy"] = self._triplets.accuracy(scores)
        return figures
