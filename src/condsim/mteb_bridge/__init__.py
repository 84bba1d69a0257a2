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

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.mteb_bridge.conditional_sts import AbsTaskConditionalSTS as AbsTaskConditionalSTS
    from condsim.mteb_bridge.csts import CSTS as CSTS
    from condsim.mteb_bridge.encoder import MtebEncoder as MtebEncoder
    from condsim.mteb_bridge.local_data import local_task as local_task

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "conditional_sts": "AbsTaskConditionalSTS",
        "csts": "CSTS",
        "encoder": "MtebEncoder",
        "local_data": "local_task",
    },
    extra="mteb",
)
