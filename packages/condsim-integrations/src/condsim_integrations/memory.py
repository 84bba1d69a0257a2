"""A memory on top of any store: no fact twice, old values kept, conflicts handed back."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from condsim.errors import InputError, check_at_least
from condsim.model.base import check_fraction, check_rows
from condsim.model.finding import Finding, find_verdict
from condsim.model.judge import load_judge

HISTORY = "history"
"""Key of the metadata with the texts that an entry replaced, the oldest first, as JSON."""

Store = TypeVar("Store")
Entry = TypeVar("Entry")


class StoreMemory(ABC, Generic[Store, Entry]):
    """Entries of a store, each fact once; the store's own search finds what is judged."""

    def __init__(
        self,
        store: Store,
        *,
        condition: str | None = None,
        candidates: int = 8,
        merged_from: float = 0.0,
    ) -> None:
        """Take a store, empty or not; check the settings and load the judge."""
        check_at_least(1, candidates=candidates)
        check_fraction("probability", merged_from=merged_from)
        self.store = store
        self.condition, self.candidates, self.merged_from = condition, candidates, merged_from
        self._judge = load_judge()

    def add(self, entries: Sequence[Entry]) -> list[Finding]:
        """Take new entries in, one after another.

        Related and new ones are added. A duplicate is left out. An update takes the place of the
        known entry, whose text is kept in the metadata ``history``. What contradicts a known entry,
        or cannot be told, is not added: the finding says so, for a person to decide.

        Returns:
            The finding for each entry against the known ones; ``row`` is an id of the store.

        Raises:
            InputError: If a text is empty, or the store does not say the ids of its entries.
        """
        check_rows(None, texts=[self._text(entry) for entry in entries])
        return [self._take(entry) for entry in entries]

    def _take(self, entry: Entry) -> Finding:
        text = self._text(entry)
        known = {self._id(near): near for near in self._nearest(text)}
        finding = find_verdict(
            text,
            [(key, self._text(near)) for key, near in known.items()],
            self._judge,
            self.condition,
            merged_from=self.merged_from,
        )
        verdict = finding.verdict.verdict
        if verdict == "update":
            key = str(finding.row)
            # The new entry comes first, so that no failure loses both.
            self._insert(self._with_history(entry, known[key]))
            self._delete(key)
        elif verdict in ("related", "new"):
            self._insert(entry)
        return finding

    def _id(self, entry: Entry) -> str:
        key: str | None = getattr(entry, self._id_name)
        if key is None:
            raise InputError("The store gives no ids of its entries, so none can be replaced.")
        return key

    _id_name: str

    @abstractmethod
    def _text(self, entry: Entry) -> str:
        """Text of an entry."""

    @abstractmethod
    def _nearest(self, text: str) -> Sequence[Entry]:
        """Known entries nearest to a text."""

    @abstractmethod
    def _insert(self, entry: Entry) -> None:
        """Add an entry to the store."""

    @abstractmethod
    def _delete(self, key: str) -> None:
        """Remove the entry of an id."""

    @abstractmethod
    def _with_history(self, entry: Entry, old: Entry) -> Entry:
        """Copy an entry with the texts that it replaces."""

    def _history(self, old: Entry, metadata: dict[str, Any]) -> dict[str, str]:
        """Metadata of an entry in the place of ``old``, whose metadata are given."""
        return {HISTORY: json.dumps([*json.loads(metadata.get(HISTORY, "[]")), self._text(old)])}
