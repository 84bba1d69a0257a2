"""Entry point of ``python -m condsim`` and ``accelerate launch -m condsim``."""

from __future__ import annotations

from condsim.cli.main import run

if __name__ == "__main__":
    run()
