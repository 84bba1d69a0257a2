"""The card of a trained model: what it is, how it was made, what it scores, what it is not for."""

from __future__ import annotations

import yaml

from condsim.evaluation.report import Report
from condsim.evaluation.tables import to_markdown
from condsim.training.data import TrainingData, used_rows
from condsim.training.recipe import Recipe

__all__ = ["model_card"]

_INPUTS = {
    "bi-encoder": "pairs of texts `[{first}, {second}]`; the similarity is the cosine",
    "tri-encoder": "pairs of texts `[{first}, {second}]`; the similarity is the cosine",
    "cross-encoder": "`[sentence1 SEP sentence2, condition]`; the similarity is the output",
}


def model_card(
    recipe: Recipe,
    report: Report,
    *,
    train: TrainingData,
    runs: int = 1,
    base_model: str | None = None,
) -> str:
    """Writes a model card in Markdown.

    No row of the training data is quoted: C-STS asks that its rows not be published.

    Args:
        recipe: The recipe of the model.
        report: Its evaluation on the dev file.
        train: The training data; only its name, revision and number of rows are used.
        runs: How many runs the weights are the mean of.
        base_model: Hub name of what training began from; the recipe's backbone if None.

    Returns:
        The text of ``README.md``, with the front matter that the Hub reads.
    """
    rows = len(used_rows(train, recipe))
    first, second = "condition", "sentence"
    if recipe.order == "sentence-first":
        first, second = second, first
    inputs = _INPUTS[recipe.encoder].format(first=first, second=second)
    average = ""
    if runs > 1:
        average = f"The weights are the mean of {runs} runs; `training.json` has their recipes. "
    front = yaml.safe_dump(
        {
            **({"license": recipe.license} if recipe.license else {}),
            "library_name": "sentence-transformers",
            "pipeline_tag": "sentence-similarity",
            "base_model": base_model or recipe.backbone,
            "tags": ["condsim", "conditional-similarity", "c-sts", recipe.encoder],
        },
        sort_keys=False,
    )
    return f"""---
{front}---

# {recipe.name}

How similar are two texts, *with respect to a condition*? A {recipe.encoder} made with
[condsim](https://pypi.org/project/condsim/). It takes {inputs}.
{average}

```python
import condsim

model = condsim.load("path/of/this/folder")
model.score("A man throws a ball.", "A girl kicks a ball.", "the sport")
```

## Data

Trained on `{train.name}` (revision {train.revision}, {rows} labelled rows); the
epoch was chosen, and the scores calibrated to [0, 1] (0.5 is Likert 3), on `{report.task}`
(revision {report.task_revision}).

## Scores on the dev data

{to_markdown(report)}

These are the figures the epoch was chosen by, so they flatter the model a little. The
condition-only line never sees the sentences: what a model is worth is its distance from there.

## Recipe

```yaml
{yaml.safe_dump(recipe.to_dict(), sort_keys=False)}```

## Limits

It has learnt from short English image captions and the aspects people name there. Elsewhere,
measure it on rows of your own (`condsim evaluate`) before trusting it.
"""
