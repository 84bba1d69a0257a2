from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor

from condsim.errors import InputError
from condsim.training.losses.base import LossOptions
from condsim.training.losses.contrastive import RDLLoss
from condsim.training.losses.ranking import (
    CoSENTLoss,
    ListNetLoss,
    PairOrderLoss,
    RankingLoss,
    RankNetLoss,
)
from condsim.training.losses.registry import OBJECTIVES
from condsim.training.losses.similarity import CorrelationLoss, MSELoss, QuadLoss
from condsim.training.losses.weighted import WeightedSumLoss

LOSSES: dict[str, Any] = {
    name: objective.load()
    for name, objective in OBJECTIVES.items()
    if objective.compares in ("rows", "pairs")
}
GOLD = torch.tensor([1.0, 0.5, 0.25])
# Rows 0 and 1 are one sentence pair, row 2 has no partner.
LABELS = torch.tensor([[1.0, 4.0], [0.5, 4.0], [0.25, -1.0]])


# The fixtures' similarities are 1.0, 0.6, 0.0.
def test_mse_loss_hand_worked_equals(table_encoder: Any, columns: Any) -> None:
    # (0² + 0.1² + 0.25²) / 3 = (0.01 + 0.0625) / 3
    assert MSELoss(table_encoder)(columns, GOLD).item() == pytest.approx(0.0725 / 3)


def test_quad_loss_hand_worked_equals(table_encoder: Any, columns: Any) -> None:
    # One pair, high 1.0 and low 0.6: max(0.5 + 0.6 - 1.0, 0) = 0.1
    assert QuadLoss(table_encoder, margin=0.5)(columns, LABELS).item() == pytest.approx(0.1)


def test_correlation_loss_hand_worked_equals(table_encoder: Any, columns: Any) -> None:
    # x deviates by (7, 1, -8)/15, y by (5, -1, -4)/12: r = (35 - 1 + 32) / sqrt(114 · 42)
    expected = 1 - 66 / math.sqrt(114 * 42)
    assert CorrelationLoss(table_encoder)(columns, GOLD).item() == pytest.approx(expected, rel=1e-4)


def test_cosent_loss_hand_worked_equals(table_encoder: Any, columns: Any) -> None:
    # All in order, scale 2: log(1 + e^(2·(0.6 - 1)) + e^(2·(0 - 1)) + e^(2·(0 - 0.6)))
    expected = math.log(1 + math.exp(-0.8) + math.exp(-2.0) + math.exp(-1.2))
    assert CoSENTLoss(table_encoder, scale=2.0)(columns, GOLD).item() == pytest.approx(expected)


def test_ranknet_loss_hand_worked_equals(table_encoder: Any, columns: Any) -> None:
    # All in order, scale 2; the mean of log(1 + e^-0.8), log(1 + e^-2) and log(1 + e^-1.2)
    expected = sum(math.log1p(math.exp(-x)) for x in (0.8, 2.0, 1.2)) / 3
    assert RankNetLoss(table_encoder, scale=2.0)(columns, GOLD).item() == pytest.approx(expected)


def test_listnet_loss_hand_worked_equals(table_encoder: Any, columns: Any) -> None:
    # scale 4: golds e^4, e^2, e^1 against cosines e^4, e^2.4, e^0, each over its sum
    gold, cosine = (4.0, 2.0, 1.0), (4.0, 2.4, 0.0)
    log_gold, log_cosine = (math.log(sum(map(math.exp, xs))) for xs in (gold, cosine))
    expected = sum(
        math.exp(y - log_gold) * (y - log_gold - x + log_cosine)
        for y, x in zip(gold, cosine, strict=True)
    )
    loss = ListNetLoss(table_encoder, scale=4.0)(columns, GOLD)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_pair_order_loss_hand_worked_equals(table_encoder: Any, columns: Any) -> None:
    # One pair, high 1.0 and low 0.6, scale 2: log(1 + e^-0.8)
    loss = PairOrderLoss(table_encoder, scale=2.0)(columns, LABELS)
    assert loss.item() == pytest.approx(math.log1p(math.exp(-0.8)))


def test_ranking_loss_hand_worked_equals(table_encoder: Any, columns: Any) -> None:
    # One pair, high 1.0 and low 0.6, scale 2, margin 0.1: log(1 + e^(-2·0.3))
    loss = RankingLoss(table_encoder, scale=2.0)(columns, LABELS)
    assert loss.item() == pytest.approx(math.log1p(math.exp(-0.6)))
    with pytest.raises(InputError, match="compares rows of one sentence pair or list"):
        RankingLoss(table_encoder)(columns, GOLD)


@pytest.mark.parametrize("loss_class", LOSSES.values())
def test_loss_two_columns_one_forward_and_gradient(
    loss_class: Any, table_encoder: Any, columns: Any
) -> None:
    # RDL wants a pair further apart than its labels: 0.4 against 0.25
    labels = LABELS if loss_class is not RDLLoss else LABELS.index_fill(1, torch.tensor(0), 0.75)
    if loss_class is RDLLoss:
        labels[0, 0] = 1.0
    loss_class(table_encoder)(columns, labels).backward()
    assert table_encoder.forwards == 1
    assert bool(table_encoder.table.grad.isfinite().all())
    assert float(table_encoder.table.grad.abs().sum()) > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", LOSSES)
def test_loss_half_precision_embeddings_equal_float32(
    name: str, dtype: torch.dtype, table_encoder: Any, columns: Any
) -> None:
    loss = LOSSES[name](table_encoder)
    full = loss(columns, LABELS)
    table_encoder.to(dtype)
    half = loss(columns, LABELS)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(full.item(), rel=1e-5)


def test_quad_loss_gold_only_raises(table_encoder: Any, columns: Any) -> None:
    with pytest.raises(InputError, match=r"labels must have shape \(rows, 2\)"):
        QuadLoss(table_encoder)(columns, GOLD)


def test_loss_three_columns_raises(table_encoder: Any, columns: Any) -> None:
    with pytest.raises(InputError, match=r"two columns of conditional sentences\. Got 3"):
        MSELoss(table_encoder)([*columns, columns[0]], GOLD)


def test_weighted_sum_loss_terms_equal_weight_times_loss(table_encoder: Any, columns: Any) -> None:
    weights = {"mse": 1.0, "quad": 0.5, "correlation": 0.0, "cosent": 0.25}
    options = LossOptions(margin=0.5, scale=2.0)
    terms = WeightedSumLoss(table_encoder, weights, options)(columns, LABELS)
    assert table_encoder.forwards == 1
    assert list(terms) == ["mse", "quad", "cosent"]
    assert terms["mse"].item() == pytest.approx(0.0725 / 3)
    assert terms["quad"].item() == pytest.approx(0.5 * 0.1)
    single = CoSENTLoss(table_encoder, scale=2.0)(columns, LABELS)
    assert terms["cosent"].item() == pytest.approx(0.25 * single.item())


def test_weighted_sum_loss_middle_tolerance_forgives_label_3(
    table_encoder: Any, columns: Any
) -> None:
    # Row 1 has the label 0.5 and the cosine 0.6: what mse has of it, 0.1², is forgiven
    tolerant = LossOptions(middle_tolerance=0.25)
    terms = WeightedSumLoss(table_encoder, {"mse": 1.0}, tolerant)(columns, GOLD)
    assert terms["mse"].item() == pytest.approx(0.0625 / 3)


@pytest.mark.parametrize("name", ["quad", "ranknet", "cosent", "listnet", "pair-order"])
def test_weighted_sum_loss_middle_tolerance_leaves_ranking_alone(
    name: str, table_encoder: Any, columns: Any
) -> None:
    labels = torch.tensor([[0.5, 4.0], [0.5, 4.0], [0.25, -1.0]])  # two labels 3: a tie
    strict, tolerant = (
        WeightedSumLoss(table_encoder, {name: 1.0}, options)(columns, labels)[name]
        for options in (LossOptions(), LossOptions(middle_tolerance=0.5))
    )
    assert torch.equal(strict, tolerant)


def test_weighted_sum_loss_zero_weight_is_not_computed(
    table_encoder: Any, columns: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Tensor) -> Tensor:
        raise RuntimeError("computed")

    monkeypatch.setattr(QuadLoss, "compute", staticmethod(fail))
    assert list(WeightedSumLoss(table_encoder, {"quad": 0, "mse": 1})(columns, GOLD)) == ["mse"]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"msee": 1.0}, "Unknown objective 'msee'. Did you mean 'mse'"),
        ({"mse": -1.0}, "weight of objective 'mse' must be at least 0"),
        ({"mse": float("nan")}, "weight of objective 'mse' must be at least 0"),
        ({"mse": 0.0}, "At least one objective"),
        ({}, "At least one objective"),
    ],
)
def test_weighted_sum_loss_bad_weights_raises(
    weights: dict[str, float], message: str, table_encoder: Any
) -> None:
    with pytest.raises(InputError, match=message):
        WeightedSumLoss(table_encoder, weights)


def test_loss_config_lists_its_settings(table_encoder: Any) -> None:
    assert MSELoss(table_encoder).get_config_dict() == {}
    assert QuadLoss(table_encoder, margin=0.5).get_config_dict() == {
        "margin": 0.5,
        "ties": "dropped",
    }
    assert CoSENTLoss(table_encoder, scale=2.0).get_config_dict() == {"scale": 2.0}
    config = WeightedSumLoss(table_encoder, {"mse": 1}).get_config_dict()
    assert config == {
        "weights": {"mse": 1.0},
        "margin": 1.0,
        "scale": 20.0,
        "tau": 5.0,
        "sigma": 0.5,
        "middle_tolerance": 0.0,
        "ranking_margin": 0.1,
        "ties": "dropped",
    }


@pytest.mark.parametrize("missing", ["torch", "sentence_transformers"])
def test_losses_import_without_extra_raises_one_line(missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from condsim.errors import MissingExtraError\n"
        "try:\n    from condsim.training.losses.similarity import MSELoss\n"
        "except MissingExtraError as error:\n    sys.exit(str(error))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == (
        f"This needs {missing}, which is not installed: pip install 'condsim[train]'"
    )
