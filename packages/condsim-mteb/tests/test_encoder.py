from __future__ import annotations

import logging

import mteb
import pytest

from condsim.errors import InputError, ModelError
from condsim.evaluation.statistics import spearman
from condsim.model.builders import build_bi_encoder, build_cross_encoder
from condsim.model.settings import ModelSettings
from condsim.model.torch import EncoderScorer
from condsim.model.tri_encoder import build_tri_encoder
from condsim_mteb import CSTS, MtebEncoder, local_task


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.ERROR, logger="mteb")


def measured(model, task):
    """Scores of the one split of a task."""
    result = mteb.evaluate(model, task, cache=None, show_progress_bar=False)
    (split,) = result.task_results[0].scores.values()
    return split[0]


def test_encoder_satisfies_the_protocol_of_encoders_alone(letters):
    encoder = MtebEncoder(letters())
    assert isinstance(encoder, mteb.EncoderProtocol)
    assert not isinstance(encoder, mteb.CrossEncoderProtocol | mteb.SearchProtocol)


@pytest.mark.parametrize("name", ["STS12", "STSBenchmark.v2", "SICK-R"])
def test_evaluate_sts_gives_the_spearman_of_condsim(letters, pairs, name):
    split = "test" if name.startswith("STSB") else None
    scores = measured(MtebEncoder(letters()), local_task(name, pairs, split=split))
    cosines = letters().score(pairs.sentences1, pairs.sentences2, None, scale="raw")
    assert scores["main_score"] == pytest.approx(spearman(cosines, pairs.labels), abs=1e-6)
    assert scores["cosine_spearman"] == scores["main_score"]
    assert scores["spearman"] == pytest.approx(scores["main_score"], abs=1e-6)


def test_evaluate_csts_gives_the_spearman_of_condsim(letters, conditional):
    scores = measured(MtebEncoder(letters()), local_task("CSTS", conditional))
    rows = conditional.labeled()
    cosines = letters().score(rows.sentences1, rows.sentences2, rows.conditions, scale="raw")
    assert scores["main_score"] == pytest.approx(spearman(cosines, rows.labels), abs=1e-6)


def test_encode_rows_with_conditions_reads_both_apart_and_each_once(letters, conditional):
    scorer = letters()
    measured(MtebEncoder(scorer, condition="the weather"), local_task("CSTS", conditional))
    assert "the person | A man throws a red ball." in scorer.embedded
    assert not any("weather" in text for text in scorer.embedded)
    rows = conditional.labeled()
    first = zip(rows.conditions, rows.sentences1, strict=True)
    second = zip(rows.conditions, rows.sentences2, strict=True)
    assert len(scorer.embedded) == len(set(first)) + len(set(second))


def test_encode_plain_rows_are_read_alone_or_under_the_given_condition(letters, pairs):
    alone, under = letters(), letters()
    measured(MtebEncoder(alone), local_task("STS12", pairs))
    measured(MtebEncoder(under, condition="the sport"), local_task("STS12", pairs))
    assert "A man throws a ball." in alone.embedded
    assert {*under.embedded} == {f"the sport | {text}" for text in alone.embedded}


def test_evaluate_model_of_mteb_reads_sentence_and_condition_as_one_text(
    tiny_backbone, conditional, monkeypatch
):
    wrapper = mteb.SentenceTransformerEncoderWrapper(str(tiny_backbone), device="cpu")
    read, encode = [], wrapper.model.encode

    def remember(sentences, **options):
        read.extend(sentences)
        return encode(sentences, **options)

    monkeypatch.setattr(wrapper.model, "encode", remember)
    measured(wrapper, local_task("CSTS", conditional))
    assert read[0] == "A man throws a red ball. the person"
    assert len(read) == 2 * len(conditional.labeled())


def test_evaluate_tri_encoder_needs_a_condition_on_plain_sts(tiny_backbone, pairs):
    scorer = EncoderScorer(build_tri_encoder(str(tiny_backbone)), name="tri")
    with pytest.raises(InputError, match="condition"):
        measured(MtebEncoder(scorer), local_task("STS12", pairs))
    given = MtebEncoder(scorer, condition="the sport")
    assert -1 <= measured(given, local_task("STS12", pairs))["main_score"] <= 1


def test_encoder_cross_encoder_folder_refused(tiny_backbone, tmp_path):
    build_cross_encoder(str(tiny_backbone), max_seq_length=48).save_pretrained(str(tmp_path))
    ModelSettings(kind="cross-encoder", name="cross", order="sentence-first").save(tmp_path)
    with pytest.raises(ModelError):
        MtebEncoder(tmp_path)


def test_encode_other_precision_refused(letters, pairs):
    with pytest.raises(InputError, match="must be float32, got 'int8'"):
        mteb.evaluate(
            MtebEncoder(letters()),
            local_task("STS12", pairs),
            cache=None,
            show_progress_bar=False,
            encode_kwargs={"precision": "int8"},
        )


def test_model_meta_tells_version_dimension_and_condition(tiny_backbone, tmp_path):
    meta = MtebEncoder(condition="the topic").mteb_model_meta
    assert meta.name.startswith("condsim/")
    assert meta.revision == MtebEncoder().mteb_model_meta.revision
    assert (meta.embed_dim, meta.framework) == (384, ["ONNX"])
    assert meta.experiment_kwargs == {"condition": "the topic"}
    build_bi_encoder(str(tiny_backbone), max_seq_length=32).save_pretrained(str(tmp_path))
    metas = []
    for order in ("condition-first", "sentence-first"):
        ModelSettings(kind="bi-encoder", name="my model", order=order).save(tmp_path)
        metas.append(MtebEncoder(tmp_path).mteb_model_meta)
    assert metas[0].revision != metas[1].revision
    assert metas[0].name == "condsim/my-model"
    assert metas[0].framework == ["Sentence Transformers", "PyTorch"]


def test_model_meta_version_is_the_given_one_that_of_the_scorer_or_like_no_other(letters):
    assert MtebEncoder(letters(revision="r1")).mteb_model_meta.revision == "r1"
    assert MtebEncoder(letters(revision="r1"), "r2").mteb_model_meta.revision == "r2"
    unknown = [MtebEncoder(letters()).mteb_model_meta.revision for _ in range(2)]
    assert unknown[0] != unknown[1]


def test_evaluate_kept_results_name_model_and_local_data(letters, conditional, tmp_path):
    cache = mteb.ResultCache(tmp_path)
    encoder = MtebEncoder(letters(revision="r1"), condition="the topic")
    result = mteb.evaluate(encoder, local_task(CSTS(), conditional), cache=cache).task_results[0]
    kept = cache.load_task_result("CSTS", encoder.mteb_model_meta)
    assert kept is not None
    assert kept.dataset_revision == "local-def456"
    assert kept.get_score() == pytest.approx(result.get_score(), abs=1e-6)
