"""Data: files become validated tasks, and their rows high-low pairs.

`load_task` reads a file of similarities of any kind into a `condsim.types.Task`; `load_csts`,
`load_stsb` and so on read one kind, `iter_csts` streams C-STS of any size. `load_nli` reads classes
and `load_triplets` triplets, for training; `iter_criteria` reads texts with labelled attributes.
`pair_rows` finds the high and the low row of each sentence pair, `describe` computes statistics,
`iter_rows` reads the rows of any file.
"""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
