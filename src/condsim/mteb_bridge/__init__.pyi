from .csts import CSTS as CSTS, AbsTaskConditionalSTS as AbsTaskConditionalSTS
from .encoder import MtebEncoder as MtebEncoder
from .local_data import local_task as local_task
