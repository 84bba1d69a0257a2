from .labelled import (
    FEWEST as FEWEST,
    LabelledRow as LabelledRow,
    read_labelled as read_labelled,
    split_labelled as split_labelled,
)
from .rehearsal import Rehearsal as Rehearsal, load_rehearsal as load_rehearsal
from .result import Adaptation as Adaptation
from .running import AdaptSettings as AdaptSettings, adapt as adapt
