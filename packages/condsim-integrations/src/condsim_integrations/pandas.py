"""Scores of the columns of a pandas frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from condsim.errors import InputError, requires_extra, unknown_name
from condsim.model.base import Condition, PairScorer, Scale, as_list
from condsim.model.criterion import Criterion
from condsim_integrations import Column, Model, score_present, scorer_of

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
        condition: Condition | Sequence[str | None] | pd.Series | None = None,
        condition_column: str | None = None,
        scale: Scale = "unit",
        model: Model = None,
    ) -> pd.Series:
        """Score two columns of texts, row by row.

        Args:
            first: Name of the column of the first texts.
            second: Name of the column of the second texts.
            condition: The condition itself, in words or learned, for every row, even if a column
                has that name; or one
                for each row, as a list, an array or a Series with the frame's index. None compares
                the texts as a whole.
            condition_column: Name of a column with a condition for each row, in place of
                ``condition``.
            scale: ``unit``, ``likert`` or ``raw``, as in ``model.score``.
            model: The model to use in place of the registered one; a name is loaded at each call.

        Returns:
            Scores, float32, with the frame's index; NaN where a text or condition is missing or
            blank.

        Raises:
            InputError: If there is no such column or more than one, a text is not a string, or
                there is not one condition for each row.
            ModelError: If there is no such model.
        """
        if condition_column is not None and condition is not None:
            raise InputError("Give either 'condition' or 'condition_column'.")
        texts1, texts2 = self._column(first), self._column(second)
        names: Condition | Column | None
        if condition is None or isinstance(condition, str | Criterion):
            names = condition
        else:
            names = self._own(condition)
        if condition_column is not None:
            names = self._column(condition_column)
        scorer = self.scorer if model is None else scorer_of(model)
        scores = score_present(scorer, texts1, texts2, names, scale=scale)
        return pd.Series(scores, index=self._frame.index, name="score")

    def _column(self, name: str) -> list[str | None]:
        if name not in self._frame.columns:
            raise unknown_name("column", str(name), map(str, self._frame.columns))
        if (number := int((self._frame.columns == name).sum())) > 1:
            raise InputError(f"The frame has {number} columns {name!r}. Rename all but one.")
        return _texts(self._frame[name])

    def _own(self, conditions: Sequence[str | None] | pd.Series) -> list[str | None]:
        """Return the conditions of the rows, which must be as many."""
        if isinstance(conditions, pd.Series):
            if not conditions.index.equals(self._frame.index):
                raise InputError(
                    "The 'condition' must have the index of the frame. Pass a column of the frame "
                    "itself, such as frame['condition']."
                )
            return _texts(conditions)
        values = as_list("condition", conditions)
        if len(values) != len(self._frame):
            raise InputError(
                "'condition' must be one text, or one for each row of the frame; got "
                f"{len(values)} for {len(self._frame)} rows."
            )
        return _texts(pd.Series(values, dtype=object))


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
        >>> frame.condsim.score("a", "b", condition="the color").isna().tolist()
        [False, True]
    """
    _Accessor.scorer = scorer_of(model)
    if getattr(pd.DataFrame, "condsim", None) is not _Accessor:
        pd.api.extensions.register_dataframe_accessor("condsim")(_Accessor)
