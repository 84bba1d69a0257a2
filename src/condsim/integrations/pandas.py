"""Scores of the columns of a pandas frame."""

from __future__ import annotations

from typing import ClassVar

from condsim.errors import InputError, requires_extra, unknown_name
from condsim.integrations import Model, score_present, scorer_of
from condsim.model.base import PairScorer, Scale

with requires_extra("pandas"):
    import pandas as pd


class _Accessor:
    """The accessor ``frame.condsim``."""

    scorer: ClassVar[PairScorer]

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def score(
        self,
        first: str,
        second: str,
        *,
        condition: str | pd.Series | None = None,
        scale: Scale = "unit",
    ) -> pd.Series:
        """Score two columns of texts, row by row.

        Args:
            first: Name of the column of the first texts.
            second: Name of the column of the second texts.
            condition: The condition itself, for every row, or a column of the frame with one for
                each, such as ``frame["condition"]``; None compares the texts as a whole.
            scale: ``unit``, ``likert`` or ``raw``, as in ``model.score``.

        Returns:
            Scores, float32, with the frame's index; NaN where a text or condition is missing or
            blank.

        Raises:
            InputError: If there is no such column or more than one, or a text is not a string.
        """
        for name in (first, second):
            if name not in self._frame.columns:
                raise unknown_name("column", str(name), map(str, self._frame.columns))
            if (number := int((self._frame.columns == name).sum())) > 1:
                raise InputError(f"The frame has {number} columns {name!r}. Rename all but one.")
        if isinstance(condition, pd.Series):
            if not condition.index.equals(self._frame.index):
                raise InputError(
                    "The 'condition' must have the index of the frame. Pass a column of the frame "
                    "itself, such as frame['condition']."
                )
            condition = _texts(condition)
        texts1, texts2 = (_texts(self._frame[name]) for name in (first, second))
        scores = score_present(self.scorer, texts1, texts2, condition, scale=scale)
        return pd.Series(scores, index=self._frame.index, name="score")


def _texts(column: pd.Series) -> list[str | None]:
    """Return the values of a column, with None for any missing value of pandas."""
    texts: list[str | None] = column.astype(object).where(column.notna(), None).tolist()
    return texts


def register_pandas(model: Model = None) -> None:
    """Add ``condsim`` to pandas frames: ``frame.condsim.score("a", "b", condition="…")``.

    Args:
        model: The model that scores from then on; None is the default model.

    Raises:
        ModelError: If there is no such model.
        MissingExtraError: If pandas is not installed.

    Example:
        >>> import pandas as pd
        >>> register_pandas()
        >>> frame = pd.DataFrame({"a": ["A red car.", None], "b": ["A red bus.", "A cat."]})
        >>> frame.condsim.score("a", "b", condition="the colour").isna().tolist()
        [False, True]
    """
    _Accessor.scorer = scorer_of(model)
    if getattr(pd.DataFrame, "condsim", None) is not _Accessor:
        pd.api.extensions.register_dataframe_accessor("condsim")(_Accessor)
