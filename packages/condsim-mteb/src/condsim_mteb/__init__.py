"""condsim models and data in mteb: encoders, C-STS as a task, and tasks with your own data."""

from condsim_mteb.csts import CSTS
from condsim_mteb.encoder import MtebEncoder, local_task

__all__ = ["CSTS", "MtebEncoder", "local_task"]
