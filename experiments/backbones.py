"""Which backbones there are, and which recipe file starts a row on which of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from condsim.errors import InputError
from experiments.naming import slug

_MINILM_FILES = {
    "bi": "minilm/bi.yaml",
    "tri": "minilm/tri-hadamard.yaml",
    "cross": "minilm/cross.yaml",
    "ccl-bi": "minilm/ccl-bi.yaml",
    "ccl-tri": "minilm/ccl-tri.yaml",
}


@dataclass(frozen=True)
class Backbone:
    """A pre-trained model that the rows are run on.

    Attributes:
        key: Short name: that of a paper's backbone in the catalogue, or made of the model's name.
        label: Name in tables.
        model: Hub name or local folder.
    """

    key: str
    label: str
    model: str

    @property
    def in_papers(self) -> bool:
        """Whether it is one of the papers' five."""
        return self.key in PAPER_BACKBONES


PAPER_BACKBONES = {
    backbone.key: backbone
    for backbone in (
        Backbone("roberta-base", "RoBERTa base", "FacebookAI/roberta-base"),
        Backbone("roberta-large", "RoBERTa large", "FacebookAI/roberta-large"),
        Backbone("diffcse-base", "DiffCSE base", "voidism/diffcse-roberta-base-sts"),
        Backbone("simcse-base", "SimCSE base", "princeton-nlp/sup-simcse-roberta-base"),
        Backbone("simcse-large", "SimCSE large", "princeton-nlp/sup-simcse-roberta-large"),
    )
}
"""The backbones of both papers, by key, in the order of their tables."""

DEFAULT_BACKBONE = Backbone("minilm", "MiniLM", "sentence-transformers/all-MiniLM-L6-v2")
"""The backbone that runs on a laptop."""


def resolve(given: Sequence[str]) -> tuple[Backbone, ...]:
    """Reads the values of ``--backbone``.

    Args:
        given: Keys of the papers' backbones, ``paper`` for all five, ``minilm``, Hub names or
            folders; none means `DEFAULT_BACKBONE`.

    Returns:
        The backbones, each once, in the order given.

    Raises:
        InputError: If a name is empty, or two models have the same short name.
    """
    named = {**PAPER_BACKBONES, DEFAULT_BACKBONE.key: DEFAULT_BACKBONE}
    named |= {backbone.model: backbone for backbone in named.values()}
    found: dict[str, Backbone] = {}
    for name in given or (DEFAULT_BACKBONE.key,):
        chosen = PAPER_BACKBONES.values() if name == "paper" else [named.get(name) or _other(name)]
        for backbone in chosen:
            if found.setdefault(backbone.key, backbone) != backbone:
                raise InputError(
                    f"--backbone: {found[backbone.key].model!r} and {backbone.model!r} would have "
                    f"one name, {backbone.key!r}; run them one at a time."
                )
    return tuple(found.values())


def recipe_file(recipe: str, backbone: Backbone) -> Path:
    """Finds the file of a base recipe.

    Args:
        recipe: ``bi``, ``tri``, ``cross``, ``ccl-bi``, ``ccl-tri``, ``stsb-bi`` or ``stsb-cross``.
        backbone: The backbone; one that is not of the papers takes the recipe of MiniLM.

    Returns:
        The YAML file.

    Raises:
        InputError: If it is not there.
    """
    family, _, encoder = recipe.rpartition("-")
    if family == "stsb":
        relative = f"stsb/{encoder}.yaml"
    elif backbone.in_papers:
        relative = f"{family or 'csts'}/{backbone.key}-{encoder}.yaml"
    else:
        relative = _MINILM_FILES[recipe]
    return packaged_recipe(relative)


def packaged_recipe(relative: str) -> Path:
    """Finds a recipe that comes with condsim.

    Args:
        relative: Its place, such as ``contexts/openstax.yaml``.

    Returns:
        The YAML file.

    Raises:
        InputError: If it is not there.
    """
    package = Path(__file__).resolve().parents[1]
    # In the wheel the recipes are inside the package; in a checkout they stand at its root.
    for folder in (package / "recipes", package.parents[1] / "recipes"):
        if (folder / relative).is_file():
            return folder / relative
    raise InputError(
        f"The recipe {relative} is missing: condsim is not installed whole. Install it anew."
    )


def _other(name: str) -> Backbone:
    label, key = Path(name).name, slug(name)
    if not key:
        raise InputError(f"--backbone takes a Hub name or a folder. Got {name!r}.")
    return Backbone(key, label, name)
