"""STS under a condition as an abstract task of mteb, and C-STS as such a task."""

# Uses nothing of condsim: it is to be offered to mteb (papers/docs/mteb.md). A batch is what mteb
# gives to its retrieval models where a query has an instruction (``mteb.types.QueryInput``), so
# every model of mteb runs on such a task as it is: ``text`` (sentence, space, condition) is for
# models that take one text, ``query`` (sentence) and ``instruction`` (condition) for those that
# treat the two apart.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from datasets import Dataset, DatasetDict
from mteb._evaluators import AnySTSEvaluator
from mteb.abstasks.sts import AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models import EncoderProtocol

if TYPE_CHECKING:
    from pathlib import Path

    from mteb.abstasks.sts import STSMetrics
    from mteb.models import MTEBModels
    from mteb.timing import TimingStack
    from mteb.types import EncodeKwargs, Modalities

# Columns of each side, and the key of a batch that each becomes.
_INPUTS = (
    {"text1": "text", "query1": "query", "instruction": "instruction"},
    {"text2": "text", "query2": "query", "instruction": "instruction"},
)


class AbsTaskConditionalSTS(AbsTaskSTS):
    """Similarity of two sentences with respect to a condition; scores are as in `AbsTaskSTS`.

    Attributes:
        condition_column: Name of the column with the conditions.
    """

    abstask_prompt = "Retrieve text that is similar with respect to the condition."
    condition_column: str = "condition"

    def _get_content_columns(self) -> dict[str, Modalities]:
        """Without the condition, the rows of one sentence pair would count as duplicates."""
        return {**super()._get_content_columns(), self.condition_column: "text"}

    def _evaluate_subset(
        self,
        model: MTEBModels,
        data_split: Dataset,
        *,
        encode_kwargs: EncodeKwargs,
        hf_split: str,
        hf_subset: str,
        prediction_folder: Path | None = None,
        num_proc: int | None = None,
        timer: TimingStack,
        **kwargs: Any,  # noqa: ANN401 - as in mteb
    ) -> STSMetrics:
        """Score a split; as in `AbsTaskSTS`, but for what a batch holds."""
        if not isinstance(model, EncoderProtocol):
            raise TypeError("Expected model to be an instance of EncoderProtocol")
        evaluator = AnySTSEvaluator(
            self._with_conditions(data_split),
            _INPUTS,
            task_metadata=self.metadata,
            hf_split=hf_split,
            hf_subset=hf_subset,
            input1_prompt_type=self.input1_prompt_type,
            input2_prompt_type=self.input2_prompt_type,
            timer=timer,
            **kwargs,
        )
        scores = evaluator(model, encode_kwargs=encode_kwargs, num_proc=num_proc)
        if prediction_folder:
            self._save_task_predictions(
                scores, model, prediction_folder, hf_split=hf_split, hf_subset=hf_subset
            )
        return self._calculate_scores(scores, [self._normalize(x) for x in data_split["score"]])

    def _with_conditions(self, rows: Dataset) -> Dataset:
        """The columns of `_INPUTS`; joined as mteb joins a query and its instruction."""
        conditions = list(rows[self.condition_column])
        columns = {"instruction": conditions}
        for side, name in enumerate(self.column_names, start=1):
            sentences = columns[f"query{side}"] = list(rows[str(name)])
            both = zip(sentences, conditions, strict=True)
            columns[f"text{side}"] = [f"{sentence} {condition}" for sentence, condition in both]
        return Dataset.from_dict(columns)


class CSTS(AbsTaskConditionalSTS):
    """C-STS: validation rows with the labels of Tu et al. (2024).

    The data set on the Hub is unchecked: nothing here could reach it. Give the task your own rows
    with `condsim_mteb.local_task`, or another data set with
    ``metadata.model_copy(update={"dataset": {"path": ..., "revision": ...}})``.
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
        # The labels of the test split are not public.
        eval_splits=["validation"],
        eval_langs=["eng-Latn"],
        main_score="cosine_spearman",
        # Years of publication.
        date=("2023-01-01", "2024-12-31"),
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
        """Name the labels as mteb does and leave rows without one out."""
        splits = DatasetDict()
        for split, rows in cast("DatasetDict", self.dataset).items():
            scored = rows if "score" in rows.column_names else rows.rename_column("label", "score")
            # The label -1 stands for an invalid condition.
            splits[split] = scored.filter(
                lambda score: score is not None and self.min_score <= score <= self.max_score,
                input_columns="score",
            )
        self.dataset = cast("Any", splits)
