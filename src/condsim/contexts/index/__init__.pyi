from .retrieval import TfidfIndex as TfidfIndex, best as best
