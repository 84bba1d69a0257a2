"""Columns of a table: encoders, language models or test sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from condsim.errors import InputError
from papers.naming import slug


@dataclass(frozen=True)
class Column:
    """A model or test set that the rows are run on."""

    key: str
    label: str
    model: str = ""

    @property
    def in_papers(self) -> bool:
        """True if it is one of the papers' five encoders."""
        return self.key in PAPER_BACKBONES

    @property
    def hosted(self) -> bool:
        """True if it is a language model that only OpenAI has."""
        return self.key in ("gpt-3.5-turbo-0301", "gpt-4-0314")


def _by_key(*columns: Column) -> dict[str, Column]:
    return {column.key: column for column in columns}


DEFAULT_BACKBONE = Column("minilm", "MiniLM", "sentence-transformers/all-MiniLM-L6-v2")
"""The encoder that runs on a laptop."""

PAPER_BACKBONES = _by_key(
    Column("roberta-base", "RoBERTa base", "FacebookAI/roberta-base"),
    Column("roberta-large", "RoBERTa large", "FacebookAI/roberta-large"),
    Column("diffcse-base", "DiffCSE base", "voidism/diffcse-roberta-base-sts"),
    Column("simcse-base", "SimCSE base", "princeton-nlp/sup-simcse-roberta-base"),
    Column("simcse-large", "SimCSE large", "princeton-nlp/sup-simcse-roberta-large"),
)
"""The encoders of C-STS and CCL, in the order of their tables."""

PAPER_MODELS = _by_key(
    Column("flan-t5-small", "Flan-T5 small", "google/flan-t5-small"),
    Column("flan-t5-base", "Flan-T5 base", "google/flan-t5-base"),
    Column("flan-t5-large", "Flan-T5 large", "google/flan-t5-large"),
    Column("flan-t5-xl", "Flan-T5 XL", "google/flan-t5-xl"),
    Column("flan-t5-xxl", "Flan-T5 XXL", "google/flan-t5-xxl"),
    Column("flan-ul2", "Flan-UL2", "google/flan-ul2"),
    Column("tk-instruct-3b", "Tk-Instruct 3B", "allenai/tk-instruct-3b-def-pos"),
    Column("tk-instruct-11b", "Tk-Instruct 11B", "allenai/tk-instruct-11b-def-pos"),
    Column("gpt-3.5-turbo-0301", "ChatGPT-3.5", "gpt-3.5-turbo-0301"),
    Column("gpt-4-0314", "GPT-4", "gpt-4-0314"),
)
"""The language models of C-STS, in the order of its Table 11."""

TEST_SETS = _by_key(
    *(Column(f"sts{year}", f"STS{year}") for year in range(12, 17)),
    Column("sts-b", "STS-B"),
    Column("sick-r", "SICK-R"),
)
"""The test sets of SSBC, in the order of its Table 2."""


def resolve_backbones(given: Sequence[str]) -> tuple[Column, ...]:
    """Read the values of ``--backbone``; ``paper`` stands for all five, no value for MiniLM."""
    known = {**PAPER_BACKBONES, DEFAULT_BACKBONE.key: DEFAULT_BACKBONE}
    names = [
        key
        for name in given or (DEFAULT_BACKBONE.key,)
        for key in (PAPER_BACKBONES if name == "paper" else [name])
    ]
    return _resolve(names, known, option="--backbone")


def resolve_models(given: Sequence[str]) -> tuple[Column, ...]:
    """Read the values of ``--model``: models of the paper, Hub names, folders, server's names."""
    return _resolve(given, PAPER_MODELS, option="--model")


def _resolve(
    names: Sequence[str], known: Mapping[str, Column], *, option: str
) -> tuple[Column, ...]:
    """The columns, each once; no two may have one name in tables and folders."""
    by_model = {column.model: column for column in known.values()}
    found: dict[str, Column] = {}
    for name in names:
        column = known.get(name) or by_model.get(name) or _other(name, option)
        short = column.key if option == "--backbone" else column.label
        if found.setdefault(short, column) != column:
            raise InputError(
                f"{option}: {found[short].model!r} and {column.model!r} would have one name, "
                f"{short!r}; run them one at a time."
            )
    return tuple(found.values())


def _other(name: str, option: str) -> Column:
    """A model that no paper used. A language model never takes the key of a paper's."""
    if option == "--backbone":
        if not slug(name):
            raise InputError(f"--backbone takes a Hub name or a folder, got {name!r}.")
        return Column(slug(name), Path(name).name, name)
    if not slug(name):
        raise InputError(
            f"--model takes a Hub name, a folder or a server's name for its model, got {name!r}."
        )
    path = Path(name)
    return Column(f"other:{name}", path.name if path.is_absolute() else name, name)
