"""Facts of the machine that decide how fast things run."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["facts", "limit_cores", "usable_cores", "version_of"]

_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_bf16", "amx_int8")
_LIBRARIES = (
    "condsim",
    "numpy",
    "onnxruntime",
    "sentence-transformers",
    "tokenizers",
    "torch",
    "transformers",
)


def usable_cores() -> int:
    """Number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit_cores(cores: int) -> int:
    """Keep this process and those it starts to a number of cores, where the system lets it.

    Call it before any library makes its threads.

    Args:
        cores: The number wanted, 1 or more.

    Returns:
        The number of cores this process may use from now on.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    return usable_cores()


def version_of(library: str) -> str:
    """Name and version of a library, such as ``torch 2.13.0``.

    Args:
        library: Its name on the package index.

    Returns:
        The text for the table; ``library (not installed)`` if it is not.
    """
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return f"{library} (not installed)"


def facts() -> dict[str, object]:
    """Facts of the machine and the libraries.

    Returns:
        Values that JSON can hold. ``load`` is the mean number of busy processes of the last minute,
        these benchmarks included; far more of them than cores means that others were at work.
    """
    words = _cpu_words()
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": _cpu_name(),
        "flags": [flag for flag in _FLAGS if flag in words],
        "cores": os.cpu_count(),
        "cores_used": usable_cores(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "libraries": [version_of(library) for library in _LIBRARIES],
    }


def _cpu_text() -> str:
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _cpu_words() -> frozenset[str]:
    """The processor's feature flags; none where the system does not list them."""
    return frozenset(_cpu_text().split())


def _cpu_name() -> str:
    for line in _cpu_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
