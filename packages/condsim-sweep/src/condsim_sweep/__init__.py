"""Sweeps: search for the best recipe, and train it with several seeds.

The names are imported when they are asked for: ``condsim --help`` must not load Optuna or torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.errors import lazy_names

if TYPE_CHECKING:
    from condsim_sweep.spec import load_sweep
    from condsim_sweep.sweep import run_sweep

__all__ = ["load_sweep", "run_sweep"]

_PLACES = {
    "load_sweep": "condsim_sweep.spec.load_sweep",
    "run_sweep": "condsim_sweep.sweep.run_sweep",
}

__getattr__ = lazy_names(__name__, _PLACES)
