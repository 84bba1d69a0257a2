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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pretrained_share": 0}, "between 0 and 1"),
        ({"pretrained_share": 1}, "between 0 and 1"),
        ({"pretrained_share": float("nan")}, "between 0 and 1"),
        ({"pretrained": None}, "two runs or more"),
    ],
)
def test_average_models_one_run_with_a_wrong_share_raises(runs, tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        average_models(runs[:1], tmp_path / "mean", **{"pretrained": str(runs[0]), **options})


def test_average_models_unfinished_or_of_another_order_raises(runs, tmp_path, tiny_recipe):
    with pytest.raises(InputError, match="not a finished run"):
        average_models([runs[0], tmp_path], tmp_path / "mean")
    fit(tiny_recipe.replaced(epochs=1, order="sentence-first"), tmp_path / "other")
    with pytest.raises(InputError, match="differ in 'order'"):
        average_models([runs[0], tmp_path / "other"], tmp_path / "mean")


def test_average_models_with_another_layer_raises(runs, tmp_path, tiny_recipe):
    fit(tiny_recipe.replaced(epochs=1, transform=True), tmp_path / "other")
    models = [SentenceTransformer(str(folder)) for folder in (runs[0], tmp_path / "other")]
    with pytest.raises(InputError, match="one architecture"):
        average_weights(models, [0.5, 0.5])
    with pytest.raises(InputError, match="without 'transform'"):
        average_models([tmp_path / "other"], tmp_path / "mean", pretrained=tiny_recipe.backbone)


def test_average_models_writes_a_folder_that_loads_with_float16_of_half_the_size(runs, tmp_path):
    report = average_models(runs, tmp_path / "whole", name="mean")
    assert Report.from_json(tmp_path / "whole" / "report.json").model == report.model
    model = condsim.load(str(tmp_path / "whole"))
    assert model.name == "mean"
    assert 0 <= model.score("A dog runs.", "A cat runs.", "the animal") <= 1
    average_models(runs, tmp_path / "half", float16=True)
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("whole", "half")]
    assert sizes[1] < 0.6 * sizes[0]
    whole, half = (SentenceTransformer(str(tmp_path / name)) for name in ("whole", "half"))
    for one, other in zip(whole.parameters(), half.parameters(), strict=True):
        assert other.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
