"""A memory that keeps itself in order: no fact twice, old values kept, conflicts in a queue."""

import json
from pathlib import Path

import condsim
from condsim.search import Index, find_verdicts

COLUMNS = ("key", "text", "history")


class Memory:
    """Facts in a folder. One process at a time."""

    def __init__(self, folder: Path | str, *, sure: float = 0.0) -> None:
        """Open or make a memory; a merge takes a probability of ``sure``."""
        self.folder, self.sure = Path(folder), sure
        self.judge = condsim.load_judge()
        self.conflicts_file = self.folder / "conflicts.jsonl"
        self.index = None
        if (self.folder / "facts").exists():
            self.index = Index.open(self.folder / "facts")

    def add(self, text: str) -> str:
        """Take a fact in; returns its verdict against the fact that decided."""
        if not self.judge.reads(text):
            self._queue("cannot tell", "", text)
            return "cannot tell"
        if self.index is None:
            row = dict(zip(COLUMNS, ("1", text, "[]"), strict=True))
            self.index = Index.build([row], self.folder / "facts", key="key")
            return "new"
        (finding,) = find_verdicts([text], self.index, self.judge, merged_from=self.sure)
        verdict = finding.verdict.verdict
        if verdict == "update":
            self._replace(str(finding.row), finding.known, text)
        elif verdict in ("contradiction", "cannot tell"):
            self._queue(verdict, finding.known, text)
        elif verdict in ("related", "new"):
            row = dict(zip(COLUMNS, (str(len(self.index) + 1), text, "[]"), strict=True))
            self.index.add([row])
        return verdict

    def _replace(self, key: str, old: str, text: str) -> None:
        (hit,) = self.index.search(old, plain=True, top=1, where=f"key = '{key}'")
        history = [*json.loads(hit.columns["history"]), old]
        self.index.update([dict(zip(COLUMNS, (key, text, json.dumps(history)), strict=True))])

    def _queue(self, verdict: str, known: str, text: str) -> None:
        with self.conflicts_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"verdict": verdict, "known": known, "new": text}) + "\n")

    def conflicts(self) -> list[dict[str, str]]:
        """Pairs that a person has to decide."""
        if not self.conflicts_file.exists():
            return []
        return [json.loads(line) for line in self.conflicts_file.read_text("utf-8").splitlines()]

    def recall(self, query: str, top: int = 3) -> list[str]:
        """Return the facts nearest to a query."""
        return [hit.text for hit in self.index.search(query, plain=True, top=top)]
