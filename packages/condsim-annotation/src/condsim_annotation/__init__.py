"""Build a data set with annotators: candidates, Label Studio, MTurk, agreement, splits, card."""
