from __future__ import annotations

from tests.data.conftest import HEADER, released, write, write_csts  # noqa: F401

import papers.data  # noqa: F401  (registers the readers with `load_task`)
