"""Annotation of a new data set in three stages, as C-STS was made (C-STS §2.2.2, Appendix C)."""

# qualification: a test with known answers gives the pool of annotators; conditions: sentence pairs
# get C-High and C-Low (conditions.parquet); verification: pairs with conditions get 1 to 5, or no
# meaning (ratings.parquet).
# ``stages`` is what annotators see, in Label Studio (``server``) and in a form for Mechanical Turk
# (``mturk``); ``store`` one SQLite file of what was handed out and what came back; ``exchange`` and
# ``outcome`` the steps; ``prefilling`` the help of models.

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="build")
