"""The bridge to mteb: condsim models on its tasks, and C-STS as a task of its own format.

| name | what it is |
|---|---|
| `MtebEncoder` | a condsim model in the form that ``mteb.evaluate`` takes |
| `CSTS` | C-STS as a task of mteb |
| `AbsTaskConditionalSTS` | what such a task is made of: pairs with a condition |
| `local_task` | a task of mteb with data of your own: no Hub |

Everything here needs ``pip install 'condsim[mteb]'``.
"""

from __future__ import annotations

from condsim.errors import require

require("mteb", extra="mteb")

from condsim.mteb_bridge.conditional_sts import AbsTaskConditionalSTS  # noqa: E402
from condsim.mteb_bridge.csts import CSTS  # noqa: E402
from condsim.mteb_bridge.encoder import MtebEncoder  # noqa: E402
from condsim.mteb_bridge.local_data import local_task  # noqa: E402

__all__ = ["CSTS", "AbsTaskConditionalSTS", "MtebEncoder", "local_task"]
