"""Weighted sums of objectives over two columns of conditional sentences."""

from __future__ import annotations

import math
import subprocess
import sys
import textwrap
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from condsim.model.builders import build_bi_encoder
from condsim.model.tri_encoder import build_tri_encoder
from condsim.training import objective_loss
from condsim.training.losses import bcl_loss
from condsim.training.objective_loss import ObjectiveLoss, similarity_values, weighted_terms
from condsim.training.objectives import OBJECTIVES, LossOptions

USE_SIMILARITIES = {name for name, entry in OBJECTIVES.items() if entry.uses_similarities}
CCL = {"w-acl": 1.0, "bcl": 1.0, "mse": 1.0, "c-mse": 1.0}
# Rows 0 and 1 are one sentence pair, row 2 has no partner.
LABELS = torch.tensor([[1.0, 4.0], [0.5, 4.0], [0.25, -1.0]])


def single(encoder: Any, name: str, **options: float) -> Any:
    """A loss of one objective that returns its value."""
    loss = ObjectiveLoss(encoder, {name: 1.0}, LossOptions(**options))
    return lambda columns, labels: loss(columns, labels)[name]


def listnet_by_hand(gold: list[float], predicted: list[float]) -> float:
    shares = [[math.exp(x) / sum(map(math.exp, xs)) for x in xs] for xs in (gold, predicted)]
    return sum(q * math.log(q / p) for q, p in zip(*shares, strict=True))


# The similarities of the fixtures are 1.0, 0.6, 0.0.
HAND_WORKED: list[tuple[str, dict[str, float], float]] = [
    # (0² + 0.1² + 0.25²) / 3 = (0.01 + 0.0625) / 3
    ("mse", {}, 0.0725 / 3),
    # Row 1 has the label 0.5 and the cosine 0.6: its part of mse, 0.1², is forgiven.
    ("mse", {"middle_tolerance": 0.25}, 0.0625 / 3),
    # One pair, high 1.0 and low 0.6: max(0.5 + 0.6 - 1.0, 0) = 0.1
    ("quad", {"margin": 0.5}, 0.1),
    # x deviates by (7, 1, -8)/15, y by (5, -1, -4)/12: r = (35 - 1 + 32) / sqrt(114 · 42)
    ("correlation", {}, 1 - 66 / math.sqrt(114 * 42)),
    # All in order, scale 2: log(1 + e^(2·(0.6 - 1)) + e^(2·(0 - 1)) + e^(2·(0 - 0.6)))
    ("cosent", {"scale": 2.0}, math.log(1 + math.exp(-0.8) + math.exp(-2) + math.exp(-1.2))),
    # All in order, scale 2; the mean of log(1 + e^-0.8), log(1 + e^-2) and log(1 + e^-1.2)
    ("ranknet", {"scale": 2.0}, sum(math.log1p(math.exp(-x)) for x in (0.8, 2.0, 1.2)) / 3),
    # Gold (1, 0.5, 0.25) and predicted (1, 0.6, 0) as shares at scale 1: Σ q (log q - log p)
    ("listnet", {"scale": 1.0}, listnet_by_hand([1.0, 0.5, 0.25], [1.0, 0.6, 0.0])),
    # One pair, high 1.0 and low 0.6, scale 2: log(1 + e^-0.8)
    ("pair-order", {"scale": 2.0}, math.log1p(math.exp(-0.8))),
    # One pair, high 1.0 and low 0.6, scale 2, margin 0.1: log(1 + e^(-2·0.3))
    ("ranking", {"scale": 2.0}, math.log1p(math.exp(-0.6))),
    # One pair, gap 0.5: 0.5 + 0.6 - 1.0 = 0.1
    ("fdl", {}, 0.1),
    # With the label 0.75 in place of 0.5 the gap is 0.25: 1.0 - 0.6 - 0.25 = 0.15
    ("rdl", {}, 0.15),
    ("acl", {}, 0.1),
    ("w-acl", {}, 0.05),
]


@pytest.mark.parametrize(("name", "options", "expected"), HAND_WORKED)
def test_objective_hand_worked_equals(
    name: str, options: dict[str, float], expected: float, table_encoder: Any, columns: Any
) -> None:
    labels = LABELS.clone()
    labels[1, 0] = 0.75 if name == "rdl" else 0.5
    value = single(table_encoder, name, **options)(columns, labels)
    assert value.item() == pytest.approx(expected, rel=1e-4, abs=1e-6)
    value.backward()
    assert table_encoder.forwards == 1
    assert bool(table_encoder.table.grad.isfinite().all())
    assert float(table_encoder.table.grad.abs().sum()) > 0


def test_ties_kept_count_as_in_the_released_code_hand_worked() -> None:
    # Pair 0 has the labels 0.75 and 0.25 and the cosines 0.8 and 0.1; pair 1 is a tie, whose first
    # row (0.3) is the positive and whose second (0.7) the negative.
    similarities = torch.tensor([0.1, 0.3, 0.8, 0.7])
    gold, pair_ids = torch.tensor([0.25, 0.5, 0.75, 0.5]), torch.tensor([0, 1, 0, 1])
    expected = {
        # Quad: 1 + 0.1 - 0.8 = 0.3 of pair 0, 1 + 0.7 - 0.3 = 1.4 of pair 1
        "quad": {"dropped": 0.3, "kept": (0.3 + 1.4) / 2},
        # W-ACL: 0.5 * |0.5 + 0.1 - 0.8| = 0.1, and 0 * |0 + 0.7 - 0.3| = 0
        "w-acl": {"dropped": 0.1, "kept": 0.05},
        # ACL: 0.2 and 0.4
        "acl": {"dropped": 0.2, "kept": 0.3},
    }
    assert LossOptions().ties == "dropped"
    weights = dict.fromkeys(expected, 1.0)
    for ties in ("dropped", "kept"):
        options = LossOptions(ties=ties)  # type: ignore[arg-type]
        values = similarity_values(similarities, gold, [pair_ids], options)
        terms = weighted_terms(values, weights, options)
        for name, values in expected.items():
            assert terms[name].item() == pytest.approx(values[ties])


def test_objective_hand_worked_values_are_of_all_objectives() -> None:
    assert {name for name, *_ in HAND_WORKED} == USE_SIMILARITIES


def test_objective_loss_terms_equal_weight_times_loss(table_encoder: Any, columns: Any) -> None:
    weights = {"mse": 1.0, "quad": 0.5, "correlation": 0.0, "cosent": 0.25}
    options = LossOptions(margin=0.5, scale=2.0)
    loss = ObjectiveLoss(table_encoder, weights, options)
    terms = loss(columns, LABELS)
    assert table_encoder.forwards == 1
    assert list(terms) == ["mse", "quad", "cosent"]
    assert terms["mse"].item() == pytest.approx(0.0725 / 3)
    assert terms["quad"].item() == pytest.approx(0.5 * 0.1)
    alone = single(table_encoder, "cosent", scale=2.0)(columns, LABELS)
    assert terms["cosent"].item() == pytest.approx(0.25 * alone.item())


@pytest.mark.parametrize("name", ["quad", "ranknet", "cosent", "listnet", "pair-order"])
def test_objective_on_order_ignores_middle_tolerance(
    name: str, table_encoder: Any, columns: Any
) -> None:
    # Two labels 3 are a tie.
    labels = torch.tensor([[0.5, 4.0], [0.5, 4.0], [0.25, -1.0]])
    strict = single(table_encoder, name)(columns, labels)
    assert torch.equal(strict, single(table_encoder, name, middle_tolerance=0.5)(columns, labels))


def identity_head(loss: ObjectiveLoss) -> None:
    """Make g the identity on vectors without negative numbers."""
    assert loss.head is not None
    for index in (0, 2):
        torch.nn.init.eye_(loss.head.layers[index].weight)  # type: ignore[arg-type]
        torch.nn.init.zeros_(loss.head.layers[index].bias)  # type: ignore[arg-type]


def test_c_mse_identity_head_equals_mse(table_encoder: Any, columns: Any) -> None:
    loss = ObjectiveLoss(table_encoder, {"c-mse": 1.0, "mse": 1.0})
    identity_head(loss)
    terms = loss(columns, LABELS)
    assert terms["c-mse"].item() == pytest.approx(terms["mse"].item())


def test_bcl_identity_head_equals_function(table_encoder: Any, columns: Any) -> None:
    loss = ObjectiveLoss(table_encoder, {"bcl": 1.0}, LossOptions(tau=2.0, sigma=0.5))
    identity_head(loss)
    # No dropout in the table: the second view is the first. Sentence 1 is row 0 of the table in
    # every row, so its cosine with the sentences 2 is 1.0, 0.6, 0.0 in each.
    negatives = torch.tensor([[1.0, 0.6, 0.0]] * 3)
    expected = bcl_loss(torch.ones(3), negatives, LABELS[:, 0], tau=2.0, sigma=0.5)
    assert loss(columns, LABELS)["bcl"].item() == pytest.approx(expected.item(), rel=1e-5)
    assert table_encoder.forwards == 2


@pytest.mark.parametrize(
    ("zeros", "forwards", "has_head"),
    [(["bcl"], 1, True), (["bcl", "c-mse"], 1, False), (["mse"], 2, True)],
)
def test_objective_loss_term_of_weight_zero_costs_nothing(
    table_encoder: Any, columns: Any, zeros: list[str], forwards: int, has_head: bool
) -> None:
    loss = ObjectiveLoss(table_encoder, {**CCL, **dict.fromkeys(zeros, 0.0)})
    assert set(loss(columns, LABELS)) == CCL.keys() - set(zeros)
    assert table_encoder.forwards == forwards
    assert (loss.head is not None) == has_head


CONDITIONAL = [
    [("the sport", "A man throws a ball."), ("the animal", "A dog runs.")],
    [("the sport", "A girl kicks a ball."), ("the animal", "A cat runs.")],
]


@pytest.mark.parametrize("encoder", ["bi", "hadamard", "concat"])
def test_ccl_real_encoder_second_view_differs_and_gradients_flow(
    tiny_backbone: Any, encoder: Any
) -> None:
    torch.manual_seed(0)
    if encoder == "bi":
        model = build_bi_encoder(str(tiny_backbone), dropout=0.3)
    else:
        model = build_tri_encoder(str(tiny_backbone), fusion=encoder, dropout=0.3)
    model.train()
    columns = [model.preprocess(texts) for texts in CONDITIONAL]
    projected: list[Tensor] = []
    loss = ObjectiveLoss(model, CCL)
    assert loss.head is not None
    loss.head.register_forward_hook(lambda _, inputs, __: projected.extend(inputs[0]))
    total = sum(loss(columns, torch.tensor([[1.0, 0.0], [0.25, 0.0]])).values())
    total.backward()  # type: ignore[union-attr]
    first, _, view = projected
    assert bool((F.cosine_similarity(first, view) < 0.9999).all())
    for name, weight in loss.named_parameters():
        # BERT's own pooler is unused.
        if ".pooler." not in name:
            assert weight.grad is not None, name
            assert bool(weight.grad.isfinite().all()), name
    assert all(float(weight.grad.abs().sum()) > 0 for weight in loss.head.parameters())  # type: ignore[union-attr]


def test_bcl_bfloat16_autocast_keeps_the_projected_space_in_float32(
    table_encoder: Any, columns: Any
) -> None:
    loss = ObjectiveLoss(table_encoder, {"bcl": 1.0}, LossOptions(tau=0.05))
    exact = loss(columns, LABELS)["bcl"].item()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert loss(columns, LABELS)["bcl"].item() == exact


class SumOfTokens(torch.nn.Module):
    """Embeds a text as the sum of its tokens, and notes the width of each forward."""

    def __init__(self) -> None:
        super().__init__()
        self.widths: list[int] = []

    def forward(self, features: dict[str, Any]) -> dict[str, Tensor]:
        tokens, mask = features["input_ids"], features["attention_mask"]
        self.widths.append(tokens.shape[1])
        total = (tokens * mask).sum(dim=1, keepdim=True)
        return {"sentence_embedding": torch.cat([total, mask.sum(dim=1, keepdim=True)], dim=1)}


def test_embed_in_sub_batches_groups_texts_of_similar_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(objective_loss, "CPU_TOKENS", 8)
    tokens = torch.arange(1, 17).view(2, 2, 4)
    masks = torch.tensor([[[1, 1, 0, 0], [1, 1, 1, 1]], [[1, 0, 0, 0], [0, 1, 1, 1]]])
    columns = [
        {"input_ids": ids, "attention_mask": mask, "task": None}
        for ids, mask in zip(tokens, masks, strict=True)
    ]
    model = SumOfTokens()
    first, second = objective_loss._embed_in_sub_batches(model, columns)
    # 4 and 3 tokens, the latter padded on the left; 2 and 1.
    assert model.widths == [4, 2]
    assert first.tolist() == [[3, 2], [26, 4]]
    assert second.tolist() == [[9, 1], [45, 3]]


def test_recipes_and_objectives_need_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = sys.modules['sentence_transformers'] = None\n"
        "from condsim.errors import MissingExtraError\n"
        "from condsim.training import Recipe\nfrom condsim_sweep import load_sweep\n"
        "Recipe(name='a', train='t', dev='d', objective={'w-acl': 1.0})\n"
        "try:\n    from condsim.training import fit\n"
        "except MissingExtraError as error:\n    sys.exit(str(error))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    line = done.stderr.splitlines()[-1]
    assert line.startswith("This needs ")
    assert "which is not installed: pip install 'condsim[train]'" in line


@pytest.mark.slow
def test_projection_head_two_processes_average_their_gradients(
    tmp_path: Any, two_processes: Any
) -> None:
    script = tmp_path / "two.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys, torch
            from condsim.training.objective_loss import ProjectionHead
            torch.distributed.init_process_group("gloo")
            rank = torch.distributed.get_rank()
            torch.manual_seed(0)
            head = ProjectionHead(4)
            batches = [torch.ones(2, 4), torch.arange(8.0).reshape(2, 4)]
            for step in range(2):  # accumulated over two steps
                head([batches[rank], batches[rank]])[0].square().sum().backward()
            torch.save([p.grad for p in head.parameters()], f"{sys.argv[1]}/{rank}.pt")
            torch.distributed.barrier()
            torch.distributed.destroy_process_group()
            torch.manual_seed(0)
            alone = ProjectionHead(4)
            for batch in batches:
                (alone([batch, batch])[0].square().sum() * 2 / 2).backward()
            torch.save([p.grad for p in alone.parameters()], f"{sys.argv[1]}/alone{rank}.pt")
            """
        )
    )
    two_processes(script, tmp_path)
    for rank in (0, 1):
        together = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        alone = torch.load(tmp_path / f"alone{rank}.pt", weights_only=True)
        for gradient, expected in zip(together, alone, strict=True):
            assert torch.allclose(gradient, expected, rtol=1e-5)
