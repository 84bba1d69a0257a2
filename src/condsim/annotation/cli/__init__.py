"""Commands of ``condsim build`` that involve annotators."""
