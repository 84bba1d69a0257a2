import json

import pytest
import torch
from sentence_transformers import SentenceTransformer

import condsim
from condsim.errors import InputError
from condsim.evaluation.report import Report
from condsim.training.averaging import average_models, average_weights
from condsim.training.run import fit
from condsim.training.trainer import build_model


@pytest.fixture(scope="module")
def runs(tmp_path_factory, tiny_recipe):
    folder = tmp_path_factory.mktemp("runs")
    for seed in (1, 2):
        fit(tiny_recipe.replaced(epochs=1, seed=seed), folder / str(seed))
    return [folder / "1", folder / "2"]


def test_average_weights_two_models_gives_the_mean(runs):
    models = [SentenceTransformer(str(run)) for run in runs]
    before = [{k: v.clone() for k, v in model.state_dict().items()} for model in models]
    average_weights(models, [0.5, 0.5])
    for name, value in models[0].state_dict().items():
        expected = (before[0][name] + before[1][name]) / 2
        torch.testing.assert_close(value, expected.to(value.dtype))


def test_average_weights_shares_weigh_the_models(runs):
    models = [SentenceTransformer(str(run)) for run in runs]
    name = next(name for name in models[0].state_dict() if name.endswith("query.weight"))
    first, second = (model.state_dict()[name].clone() for model in models)
    average_weights(models, [0.75, 0.25])
    torch.testing.assert_close(models[0].state_dict()[name], 0.75 * first + 0.25 * second)


def test_average_models_pretrained_has_its_share_of_one_run(runs, tmp_path, tiny_recipe):
    average_models(
        runs[:1], tmp_path / "mean", pretrained=tiny_recipe.backbone, pretrained_share=0.2
    )
    run, mean = (SentenceTransformer(str(f)).state_dict() for f in (runs[0], tmp_path / "mean"))
    origin = build_model(tiny_recipe).state_dict()
    for name, value in mean.items():
        torch.testing.assert_close(value, 0.8 * run[name] + 0.2 * origin[name])
    history = json.loads((tmp_path / "mean" / "training.json").read_text())
    assert history["pretrained"]["share"] == 0.2


def test_average_models_pretrained_beside_new_layers_raises(tmp_path, tiny_recipe):
    fit(tiny_recipe.replaced(epochs=1, transform=True), tmp_path / "run")
    with pytest.raises(InputError, match="without 'transform'"):
        average_models([tmp_path / "run"], tmp_path / "mean", pretrained=tiny_recipe.backbone)


def test_average_models_folds_of_names_what_all_runs_have_seen(runs, tmp_path, tiny_recipe):
    report = average_models(runs, tmp_path / "mean", folds_of=tiny_recipe.dev)
    facts = json.loads((tmp_path / "mean" / "condsim.json").read_text())["facts"]
    assert facts["training_data"] == facts["dev_data"]
    assert facts["dev_data"].endswith(report.task_revision)
    assert "dev_spearman_float32" not in facts
    assert "was trained on these rows" in (tmp_path / "mean" / "README.md").read_text()


@pytest.mark.parametrize("share", [0, 1, -0.1, float("nan")])
def test_average_models_share_out_of_range_raises(runs, tmp_path, share):
    with pytest.raises(InputError, match="between 0 and 1"):
        average_models(runs, tmp_path / "mean", pretrained=str(runs[0]), pretrained_share=share)


def test_average_models_one_run_raises(runs, tmp_path):
    with pytest.raises(InputError, match="two runs or more"):
        average_models(runs[:1], tmp_path / "mean")


def test_average_weights_other_architecture_raises(runs, tmp_path, tiny_recipe):
    fit(tiny_recipe.replaced(epochs=1, transform=True), tmp_path / "other")
    models = [SentenceTransformer(str(runs[0])), SentenceTransformer(str(tmp_path / "other"))]
    with pytest.raises(InputError, match=r"one architecture.*differs from the first"):
        average_weights(models, [0.5, 0.5])


def test_average_models_writes_a_folder_that_loads(runs, tmp_path):
    report = average_models(runs, tmp_path / "mean", name="mean")
    assert Report.from_json(tmp_path / "mean" / "report.json").model == report.model
    model = condsim.load(str(tmp_path / "mean"))
    assert model.name == "mean"
    assert 0 <= model.score("A dog runs.", "A cat runs.", "the animal") <= 1


def test_average_models_float16_is_half_the_size_and_loads_as_float32(runs, tmp_path):
    average_models(runs, tmp_path / "whole")
    average_models(runs, tmp_path / "half", float16=True)
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("whole", "half")]
    assert sizes[1] < 0.6 * sizes[0]
    whole, half = (SentenceTransformer(str(tmp_path / name)) for name in ("whole", "half"))
    for one, other in zip(whole.parameters(), half.parameters(), strict=True):
        assert other.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_average_models_unfinished_run_raises(runs, tmp_path):
    with pytest.raises(InputError, match="not a finished run"):
        average_models([runs[0], tmp_path], tmp_path / "mean")


def test_average_models_other_order_raises(runs, tmp_path, tiny_recipe):
    other = tiny_recipe.replaced(epochs=1, order="sentence-first")
    fit(other, tmp_path / "other")
    with pytest.raises(InputError, match="differ in 'order'"):
        average_models([runs[0], tmp_path / "other"], tmp_path / "mean")
