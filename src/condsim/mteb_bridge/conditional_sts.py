"""STS under a condition, as an abstract task of mteb. Uses nothing of condsim.

With `condsim.mteb_bridge.csts` it is to be offered to mteb, as ``abstasks/conditional_sts.py``.

A batch is what mteb gives to its retrieval models where a query has an instruction
(``mteb.types.QueryInput``), so every model of mteb runs on such a task as it is:

| key | what it holds | who reads it |
|---|---|---|
| ``text`` | the sentence, a space, the condition | models that take one text |
| ``query`` | the sentence | models that treat the two apart |
| ``instruction`` | the condition | models that treat the two apart |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datasets import Dataset
from mteb._evaluators import AnySTSEvaluator
from mteb.abstasks.sts import AbsTaskSTS
from mteb.models import EncoderProtocol

if TYPE_CHECKING:
    from pathlib import Path

    from mteb.abstasks.sts import STSMetrics
    from mteb.models import MTEBModels
    from mteb.timing import TimingStack
    from mteb.types import EncodeKwargs, Modalities

_INPUTS = (
    {"text1": "text", "query1": "query", "instruction": "instruction"},
    {"text2": "text", "query2": "query", "instruction": "instruction"},
)
"""Columns that each side is made of, and the key of a batch that each becomes."""


class AbsTaskConditionalSTS(AbsTaskSTS):
    """Similarity of two sentences with respect to a condition.

    The two sentences of a row have one condition. Scores are those of `AbsTaskSTS`.

    Attributes:
        condition_column: Name of the column with the conditions; the others are those of
            `AbsTaskSTS`.
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
        """Scores a split; as in `AbsTaskSTS`, but for what a batch holds."""
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
            sentences = list(rows[str(name)])
            columns[f"query{side}"] = sentences
            columns[f"text{side}"] = [
                f"{sentence} {condition}"
                for sentence, condition in zip(sentences, conditions, strict=True)
            ]
        return Dataset.from_dict(columns)

    def _push_dataset_to_hub(
        self,
        repo_name: str,
        num_proc: int | None = None,
        **kwargs: Any,  # noqa: ANN401 - as in mteb
    ) -> None:
        fields = [*map(str, self.column_names), self.condition_column, "score"]
        self._upload_dataset_to_hub(repo_name, fields, num_proc=num_proc, **kwargs)
