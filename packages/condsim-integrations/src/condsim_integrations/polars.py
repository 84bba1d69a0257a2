"""Scores in Polars expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from condsim.errors import InputError, requires_extra
from condsim.model.base import Condition, PairScorer, Scale
from condsim.model.criterion import Criterion
from condsim_integrations import Column, Model, score_present, scorer_of

with requires_extra("polars"):
    import polars as pl


class _Namespace:
    """The namespace ``expression.condsim``."""

    scorer: ClassVar[PairScorer]

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def score(
        self,
        other: str | pl.Expr,
        *,
        condition: Condition | pl.Expr | None = None,
        scale: Scale = "unit",
        model: Model = None,
    ) -> pl.Expr:
        """Score the texts of this expression against others, row by row.

        Args:
            other: Name of the column of the second texts, or an expression.
            condition: The condition itself, for every row, or an expression for one of each row,
                such as ``pl.col("condition")``; None compares the texts as a whole.
            scale: ``unit``, ``likert`` or ``raw``, as in ``model.score``.
            model: The model to use in place of the registered one; a name is loaded at each call.

        Returns:
            An expression of Float32 with the name of this one; null where a text or condition is
            null or blank.

        Raises:
            InputError: If ``other`` or the condition is neither text nor expression, or, when the
                query runs, a text is not a string.
            ModelError: If there is no such model.
        """
        # A list would stand for no row of a lazy frame in particular.
        for name, value in (("other", other), ("condition", condition)):
            if not isinstance(value, str | pl.Expr | Criterion | None):
                raise InputError(
                    f"{name!r} must be a str or an expression, such as pl.col({name!r}); got "
                    f"{type(value).__name__}."
                )
        # The scorer registered now, not the one registered when the query runs.
        scorer = self.scorer if model is None else scorer_of(model)
        expressions = [self._expression, pl.col(other) if isinstance(other, str) else other]
        if isinstance(condition, pl.Expr):
            expressions.append(condition)

        def scores(columns: Sequence[pl.Series]) -> pl.Series:
            first, second, *conditions = _aligned(columns)
            names: Condition | Column | None = next(iter(conditions), None)
            if not isinstance(condition, pl.Expr):
                names = condition
            values = score_present(scorer, first, second, names, scale=scale)
            return pl.Series(columns[0].name, values).fill_nan(None)

        return pl.map_batches(expressions, scores, pl.Float32, is_elementwise=True)


def _aligned(columns: Sequence[pl.Series]) -> list[list[str | None]]:
    """Return lists of equal length: a literal comes as one row."""
    lengths = [len(column) for column in columns]
    rows = 0 if 0 in lengths else max(lengths)
    return [
        column.to_list() * rows if len(column) == 1 != rows else column.to_list()
        for column in columns
    ]


def register_polars(model: Model = None) -> None:
    """Add ``condsim`` to Polars expressions: ``pl.col("a").condsim.score("b", condition="…")``.

    Expressions and lazy frames score when their query runs, also in the streaming engine. Called
    again, it changes the model of the expressions that are made from then on.

    Args:
        model: The model that scores; None is the default model.

    Raises:
        ModelError: If there is no such model.
        MissingExtraError: If Polars is not installed.

    Example:
        >>> import polars as pl
        >>> register_polars()
        >>> table = pl.DataFrame({"a": ["A red car.", None], "b": ["A red bus.", "A cat."]})
        >>> score = pl.col("a").condsim.score("b", condition="the color")
        >>> table.select(score).to_series().is_null().to_list()
        [False, True]
    """
    _Namespace.scorer = scorer_of(model)
    if getattr(pl.Expr, "condsim", None) is not _Namespace:
        pl.api.register_expr_namespace("condsim")(_Namespace)
