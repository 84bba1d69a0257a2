"""An embedding backend under a condition for BERTopic."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from condsim.errors import requires_extra
from condsim.loading import load_encoder
from condsim.types import FloatArray
from condsim_integrations import Model, encode_present

with requires_extra("bertopic"), warnings.catch_warnings():
    # UMAP warns that TensorFlow is missing.
    warnings.simplefilter("ignore", ImportWarning)
    from bertopic.backend import BaseEmbedder


class BertopicBackend(BaseEmbedder):  # type: ignore[misc]  # BERTopic has no types
    """Embeddings for BERTopic by one respect in which documents of a topic are alike.

    Attributes:
        condition: The respect, such as ``"the complaint"``; None compares documents as a whole.

    Example:
        >>> BertopicBackend("the color").embed(["A red car.", "A black cat."]).shape
        (2, 384)
    """

    def __init__(self, condition: str | None, *, model: Model = None) -> None:
        """Load the model.

        Args:
            condition: See the attribute.
            model: A bi- or tri-encoder; None is the default model.

        Raises:
            ModelError: If there is no such model, or it has no embeddings.
        """
        super().__init__(embedding_model=load_encoder(model))
        self.condition = condition

    def embed(self, documents: Sequence[str], verbose: bool = False) -> FloatArray:
        """Encode documents, or the words of topics, under the condition.

        Args:
            documents: Texts, length n. The embeddings of blank ones are 0: BERTopic fills short
                topics up with empty words.
            verbose: Shows nothing either way.

        Returns:
            Embeddings, ``(n, dimension)`` float32, of length 1 where there is text.
        """
        return encode_present(self.embedding_model, [*map(str, documents)], self.condition)
