"""C-STS as a task of mteb. Uses nothing of condsim but the abstract task.

To be offered to mteb as ``tasks/sts/eng/csts.py``; ``docs/mteb.md`` says what else that takes.
"""

from __future__ import annotations

from typing import Any, cast

from datasets import Dataset, DatasetDict
from mteb.abstasks.task_metadata import TaskMetadata

from condsim.mteb_bridge.conditional_sts import AbsTaskConditionalSTS


class CSTS(AbsTaskConditionalSTS):
    """C-STS: validation rows with the labels of Tu et al. (2024).

    The data set on the Hub was not to be reached where this was written: neither that it is there
    at ``main``, nor its splits and columns were checked. `condsim.mteb_bridge.local_task` gives the
    task rows of your own; ``metadata.model_copy(update={"dataset": {"path": ..., "revision":
    ...}})`` gives it another data set or a commit.

    Attributes:
        metadata: What mteb knows of a task.
    """

    min_score = 1
    max_score = 5

    metadata = TaskMetadata(
        name="CSTS",
        dataset={
            # The revision is to be a commit when the task is offered.
            "path": "LivNLP/C-STS-Reannotated",
            "revision": "main",
        },
        description=(
            "Conditional semantic textual similarity: how similar two image captions are with "
            "respect to a condition. Each pair has two conditions, under one of which it is more "
            "similar. Labels of the validation rows are the re-annotated ones."
        ),
        prompt="Retrieve text that is similar with respect to the condition.",
        reference="https://github.com/princeton-nlp/c-sts",
        type="STS",
        category="t2t",
        modalities=["text"],
        eval_splits=["validation"],  # the labels of the test split are not public
        eval_langs=["eng-Latn"],
        main_score="cosine_spearman",
        date=("2023-01-01", "2024-12-31"),  # years of publication
        domains=["Web", "Written"],
        task_subtypes=[],
        license="not specified",
        annotations_creators="human-annotated",
        dialect=[],
        sample_creation="found",
        bibtex_citation=r"""
@misc{deshpande2023csts,
  archiveprefix = {arXiv},
  author = {Ameet Deshpande and Carlos E. Jimenez and Howard Chen and Vishvak Murahari and Victoria Graf and
Tanmay Rajpurohit and Ashwin Kalyan and Danqi Chen and Karthik Narasimhan},
  eprint = {2305.15093},
  primaryclass = {cs.CL},
  title = {{C-STS}: Conditional Semantic Textual Similarity},
  year = {2023},
}

@misc{tu2024linguistically,
  archiveprefix = {arXiv},
  author = {Jingxuan Tu and Keer Xu and Liulu Yue and Bingyang Ye and Kyeongmin Rim and James Pustejovsky},
  eprint = {2406.03673},
  primaryclass = {cs.CL},
  title = {Linguistically Conditioned Semantic Textual Similarity},
  year = {2024},
}
""",  # noqa: E501 - the form mteb's own checks want
    )

    def dataset_transform(self, num_proc: int | None = None, **kwargs: Any) -> None:  # noqa: ANN401
        """Names the labels as mteb does and leaves rows without one out.

        Args:
            num_proc: Not used.
            kwargs: Not used.
        """
        splits = cast("DatasetDict", self.dataset)
        self.dataset = cast(
            "Any", DatasetDict({split: self._scored(rows) for split, rows in splits.items()})
        )

    def _scored(self, rows: Dataset) -> Dataset:
        """Rows with a label from 1 to 5; -1 stands for an invalid condition."""
        if "score" not in rows.column_names:
            rows = rows.rename_column("label", "score")
        return rows.select(
            [
                row
                for row, score in enumerate(rows["score"])
                if score is not None and self.min_score <= score <= self.max_score
            ]
        )
