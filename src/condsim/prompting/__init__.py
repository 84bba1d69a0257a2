"""Language models as scorers: prompts, examples, answers and the back ends that give them.

Source: Deshpande et al. (2023), C-STS, §4.2, A.3 and Appendix B.
"""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="llm")
