"""Readers of the papers' data sets; importing this package lets `load_task` read their files."""

from __future__ import annotations

from condsim.data.load import TASK_LOADERS
from papers.data.afs import is_afs, load_afs
from papers.data.sick import is_sick, load_sick
from papers.data.sts import is_cxc_sts, is_sts, load_cxc_sts, load_sts

TASK_LOADERS += [
    (is_sts, load_sts),
    (is_afs, load_afs),
    (is_sick, load_sick),
    (is_cxc_sts, load_cxc_sts),
]
