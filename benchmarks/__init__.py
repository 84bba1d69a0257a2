"""Every claim of speed, as a ratio against a named peer measured in the same run.

Run all of them with ``python -m benchmarks`` from the root of the repository; see
``docs/benchmarks.md``.
"""

from __future__ import annotations
