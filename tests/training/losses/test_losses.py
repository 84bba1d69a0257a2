"""Loss functions: values worked by hand, naive loops, gradients, half precision, wrong shapes."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch

from condsim.errors import InputError
from condsim.training import losses
from condsim.training.losses import (
    acl_loss,
    bcl_loss,
    correlation_loss,
    cosent_loss,
    fdl_loss,
    high_low_pairs,
    listnet_loss,
    mse_loss,
    negative_weights,
    pair_order_loss,
    quad_loss,
    ranking_loss,
    ranknet_loss,
    rdl_loss,
    relation_loss,
    tolerant_labels,
    vector_loss,
    w_acl_loss,
)

# gap + low - high: 0.5 + 0.1 - 0.9 = -0.3; 0.25 + 0.4 - 0.5 = 0.15; 1 - 0.2 - 0.3 = 0.5
GAPS = ([0.9, 0.5, 0.3], [0.1, 0.4, -0.2], [0.5, 0.25, 1.0])
# τ = 2, σ = 0.5. Row 0: own sentence 2 is hard, weight 0.75; row 1: false negative, weight 0.
BCL = ([0.8, 0.6], [[0.4, 0.2], [0.0, 0.5]], [0.25, 0.75])
BCL_VALUES = (
    math.log(1 + (0.75 * math.exp(0.2) + math.exp(0.1)) / math.exp(0.4)),
    math.log(1 + math.exp(0.0) / math.exp(0.3)),
)
# Cosines of the student 0, 0.6, 0.8; of the teacher, in three dimensions, 1, 0, 0
STUDENT = [[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]
TEACHER = [[1.0, 0.0, 0.0], [5.0, 0.0, 0.0], [0.0, 0.0, 2.0]]

HAND_WORKED = [
    # ((0.5 - 1)² + (0.25 - 0)²) / 2
    ("mse_loss", ([0.5, 0.25], [1.0, 0.0]), {}, 0.15625),
    # (3 · 0.2² + 1 · 0.4²) / 4
    ("mse_loss", ([0.2, 0.4], [0.0, 0.0], [3.0, 1.0]), {}, (3 * 0.04 + 0.16) / 4),
    # x = (0, 0.5, 1) deviates by (-.5, 0, .5); y = (0, 1, 0.5) by (-.5, .5, 0).
    # r = (0.25 + 0 + 0) / sqrt(0.5 · 0.5) = 0.5
    ("correlation_loss", ([0.0, 0.5, 1.0], [0.0, 1.0, 0.5]), {}, 0.5),
    # Gold 0.25 is the second of five labels: -log(2 / (1 + 2 + 1 + 1 + 1)) = log 3; gold 1 is the
    # last: -log(1 / 5) of equal logits.
    (
        "classification_loss",
        ([[0.0, math.log(2), 0.0, 0.0, 0.0], [3.0] * 5], [0.25, 1.0]),
        {},
        (math.log(3) + math.log(5)) / 2,
    ),
    # λ = 1: max(1 + 0.2 - 0.9, 0) = 0.3 and max(1 + 0.5 - 0.25, 0) = 1.25
    ("quad_loss", ([0.9, 0.25], [0.2, 0.5]), {}, 0.775),
    # λ = 0.1: max(0.1 + 0.2 - 0.9, 0) = 0 and max(0.1 + 0.5 - 0.25, 0) = 0.35
    ("quad_loss", ([0.9, 0.25], [0.2, 0.5]), {"margin": 0.1}, 0.175),
    # (log(1 + e^(2·(0.4 - 0.9))) + log(1 + e^(2·(0.6 - 0.6)))) / 2
    ("pair_order_loss", ([0.9, 0.6], [0.4, 0.6]), {"scale": 2.0}, (0.3132617 + 0.6931472) / 2),
    ("fdl_loss", GAPS, {}, (0 + 0.15 + 0.5) / 3),
    ("rdl_loss", GAPS, {}, 0.3 / 3),
    ("acl_loss", GAPS, {}, (0.3 + 0.15 + 0.5) / 3),
    ("w_acl_loss", GAPS, {}, (0.5 * 0.3 + 0.25 * 0.15 + 1 * 0.5) / 3),
    # Only row 0 is to score above row 1: log(1 + exp(2 · (0.9 - 0.4))) = log(1 + e)
    ("cosent_loss", ([0.4, 0.9], [1.0, 0.0]), {"scale": 2.0}, 1.3132617),
    # Row 0 above rows 1 and 2, which are equal: log(1 + e^(2·(0.9 - 0.4))) and log(1 + e^0)
    (
        "ranknet_loss",
        ([0.4, 0.9, 0.4], [1.0, 0.0, 0.0]),
        {"scale": 2.0},
        (1.3132617 + math.log(2)) / 2,
    ),
    # scale 1: gold e^ln3 : e^0 = (3/4, 1/4), predicted (1/2, 1/2)
    (
        "listnet_loss",
        ([0.0, 0.0], [math.log(3), 0.0]),
        {"scale": 1.0},
        0.75 * math.log(1.5) + 0.25 * math.log(0.5),
    ),
    ("bcl_loss", BCL, {"tau": 2.0, "sigma": 0.5}, sum(BCL_VALUES) / 2),
    # cos((3, 4), (1, 0)) = 0.6 and cos((0, 5), (3, 4)) = 0.8
    ("vector_loss", ([[3.0, 4.0], [0.0, 5.0]], [[1.0, 0.0], [3.0, 4.0]]), {}, 1 - 0.7),
    ("relation_loss", (STUDENT, TEACHER), {}, (1.0 + 0.6**2 + 0.8**2) / 3),
    ("relation_loss", (STUDENT[:1], TEACHER[:1]), {}, 0.0),
]


@pytest.mark.parametrize(("name", "values", "options", "expected"), HAND_WORKED)
def test_loss_hand_worked_equals(name, values, options, expected) -> None:
    loss = getattr(losses, name)
    first, *others = map(torch.tensor, values)
    first.requires_grad_()
    value = loss(first, *others, **options)
    assert value.item() == pytest.approx(expected, abs=1e-7)
    value.backward()
    assert bool(first.grad.isfinite().all())
    for dtype in (torch.float16, torch.bfloat16):
        half = loss(first.to(dtype), *others, **options)
        assert half.dtype == torch.float32
        exact = loss(first.to(dtype).float(), *others, **options)
        assert half.item() == pytest.approx(exact.item(), rel=1e-4, abs=1e-6)


def test_ranking_loss_hand_worked_equals() -> None:
    # Pair 0: rows 0 and 1, gap 1, apart by 0.5; list 5: rows 1 and 2, gap 0.5, apart by -0.2;
    # row 3 differs from row 2 by too little. scale 2, margin 0.1:
    # (1 · log(1 + e^(-2·0.4)) + 0.5 · log(1 + e^(2·0.3))) / 1.5
    similarities, labels = torch.tensor([0.9, 0.4, 0.2, 0.7]), torch.tensor([1.0, 0.0, 0.5, 0.6])
    ids = [torch.tensor([0, 0, 1, 1]), torch.tensor([-1, 5, 5, -1])]
    loss = ranking_loss(similarities, labels, ids, scale=2.0, ranking_margin=0.1)
    expected = (math.log1p(math.exp(-0.8)) + 0.5 * math.log1p(math.exp(0.6))) / 1.5
    assert loss.item() == pytest.approx(expected)


def test_row_losses_random_equal_naive_loops(batch) -> None:
    xs, ys = batch[0].tolist(), batch[1].tolist()
    rows = list(zip(xs, ys, strict=True))
    mean_x, mean_y = sum(xs) / 12, sum(ys) / 12
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in rows)
    norm = math.sqrt(sum((x - mean_x) ** 2 for x in xs) * sum((y - mean_y) ** 2 for y in ys))
    orders = [math.exp(20 * (sj - si)) for (si, yi), (sj, yj) in product(rows, rows) if yi > yj]
    shares = [
        (math.exp(5 * y) / sum(map(math.exp, (5 * v for v in ys))),
         math.exp(5 * x) / sum(map(math.exp, (5 * v for v in xs))))
        for x, y in rows
    ]  # fmt: skip
    naive = {
        mse_loss: sum((x - y) ** 2 for x, y in rows) / 12,
        correlation_loss: 1 - covariance / norm,
        cosent_loss: math.log(1 + sum(orders)),
        ranknet_loss: sum(map(math.log1p, orders)) / len(orders),
    }
    for loss, expected in naive.items():
        assert loss(*batch).item() == pytest.approx(expected, rel=1e-5)
    divergence = sum(y * math.log(y / x) for y, x in shares)
    assert listnet_loss(*batch, scale=5.0).item() == pytest.approx(divergence, rel=1e-4)


def test_pair_losses_random_equal_naive_loops(batch) -> None:
    high, low = batch[0][:6], batch[0][6:]
    gaps = torch.randint(1, 5, (6,), generator=torch.Generator().manual_seed(1)) / 4
    rows = list(zip(high.tolist(), low.tolist(), gaps.tolist(), strict=True))
    naive = sum(max(0.4 + n - p, 0.0) for p, n, _ in rows) / 6
    assert quad_loss(high, low, margin=0.4).item() == pytest.approx(naive, rel=1e-5)
    naive = sum(gap * abs(gap + n - p) for p, n, gap in rows) / 6
    assert w_acl_loss(high, low, gaps).item() == pytest.approx(naive, rel=1e-5)
    both = fdl_loss(high, low, gaps) + rdl_loss(high, low, gaps)
    assert acl_loss(high, low, gaps).item() == pytest.approx(both.item())


PAIRS = torch.tensor([0, 0, 1, 1, -1, 2, 2, 2, 3, 3, -1, 4])
LISTS = torch.tensor([-1, 5, 5, 5, 6, 6, -1, -1, 7, 6, 5, -1])


@pytest.mark.parametrize("weighted", [False, True])
def test_ranking_loss_random_equals_naive_loop(batch, weighted) -> None:
    weights = torch.rand(12, generator=torch.Generator().manual_seed(0)) + 0.1
    similarities, labels = (column.tolist() for column in batch)
    total = weight_sum = 0.0
    for ids in (PAIRS.tolist(), LISTS.tolist()):
        for i, j in product(range(12), range(12)):
            gap = labels[i] - labels[j]
            if ids[i] == ids[j] >= 0 and gap > 0.2:
                weight = gap * (math.sqrt(weights[i] * weights[j]) if weighted else 1.0)
                margin = similarities[i] - similarities[j] - 0.3
                total += weight * math.log1p(math.exp(-5 * margin))
                weight_sum += weight
    used = weights if weighted else None
    loss = ranking_loss(*batch, [PAIRS, LISTS], used, scale=5.0, ranking_margin=0.3)
    assert loss.item() == pytest.approx(total / weight_sum, rel=1e-5)


@pytest.mark.parametrize(("tau", "sigma"), [(0.05, 0.5), (3.0, 0.75), (10.0, 0.0), (5.0, 1.0)])
def test_bcl_loss_random_equals_naive_loop(tau, sigma) -> None:
    generator = torch.Generator().manual_seed(2)
    positives = torch.rand(7, generator=generator)
    negatives = torch.rand(7, 7, generator=generator) * 2 - 1
    labels = torch.randint(0, 5, (7,), generator=generator) / 4
    total = 0.0
    for i, label in enumerate(labels.tolist()):
        own = math.exp(positives[i] / tau)
        below = own
        for j in range(7):
            alpha = 1.0 if i != j else (0.0 if label >= sigma else 1 - label)
            below += alpha * math.exp(negatives[i, j] / tau)
        total -= math.log(own / below)
    value = bcl_loss(positives, negatives, labels, tau=tau, sigma=sigma)
    assert value.item() == pytest.approx(total / 7)


def test_relation_loss_random_equals_naive_loop_and_has_a_gradient() -> None:
    generator = torch.Generator().manual_seed(0)
    student = torch.randn(6, 4, generator=generator).requires_grad_()
    teacher = torch.randn(6, 9, generator=generator)

    def cosine(vectors, i, j):
        return torch.dot(vectors[i], vectors[j]) / (vectors[i].norm() * vectors[j].norm())

    squares = [
        (cosine(student, i, j) - cosine(teacher, i, j)) ** 2
        for i, j in product(range(6), range(6))
        if i != j
    ]
    loss = relation_loss(student, teacher)
    assert loss.item() == pytest.approx(torch.stack(squares).sum().item() / 30, rel=1e-5)
    loss.backward()
    assert float(student.grad.abs().sum()) > 0


@pytest.mark.parametrize(
    ("similarities", "labels"),
    [([0.3, 0.3, 0.3], [0.0, 0.5, 1.0]), ([0.1, 0.7, 0.9], [0.25, 0.25, 0.25]), ([0.3], [1.0])],
)
def test_correlation_loss_constant_is_one_with_zero_gradient(similarities, labels) -> None:
    predicted = torch.tensor(similarities, requires_grad=True)
    loss = correlation_loss(predicted, torch.tensor(labels))
    loss.backward()
    assert loss.item() == 1.0
    assert predicted.grad.tolist() == [0.0] * len(similarities)


def test_row_weights_count_a_row_as_often(batch) -> None:
    weights = torch.tensor([1, 2, 3] * 4)
    repeated = [column.repeat_interleave(weights) for column in batch]
    for loss in (mse_loss, correlation_loss):
        value = loss(*batch, weights.float()).item()
        assert value == pytest.approx(loss(*repeated).item(), rel=1e-5)
        assert loss(*batch, torch.full((12,), 7.0)).item() == pytest.approx(loss(*batch).item())
    constant = correlation_loss(torch.full((12,), 0.3), batch[1], weights.float())
    assert constant.item() == 1.0


def test_high_low_pairs_hand_worked_equals() -> None:
    # Pair 7 is rows 0 and 3 (0.25 < 1.0); pair 2 is rows 1 and 4, tied; -1 never pairs.
    labels, ids = torch.tensor([0.25, 0.5, 0.0, 1.0, 0.5, 0.75]), torch.tensor([7, 2, -1, 7, 2, -1])
    high, low = high_low_pairs(labels, ids)
    assert (high.tolist(), low.tolist()) == ([3], [0])
    high, low = high_low_pairs(labels, ids, ties=True)
    assert [*zip(high.tolist(), low.tolist(), strict=True)] == [(1, 4), (3, 0)]


def test_high_low_pairs_random_equals_naive_loop() -> None:
    generator = torch.Generator().manual_seed(5)
    labels = torch.randint(0, 5, (30,), generator=generator) / 4
    ids = torch.randint(-1, 8, (30,), generator=generator)
    naive = {
        (i, j)
        for i, j in product(range(30), range(30))
        if ids[i] == ids[j] and ids[i] >= 0 and labels[i] > labels[j]
    }
    high, low = high_low_pairs(labels, ids)
    assert set(zip(high.tolist(), low.tolist(), strict=True)) == naive


def test_tolerant_labels_hand_worked_equals() -> None:
    # Only golds of 0.5 move, to the predictions cut off at 0.5 - 0.25 and 0.5 + 0.25
    gold = torch.tensor([0.5, 0.5, 0.5, 0.25, 1.0])
    predicted = torch.tensor([0.6, -0.3, 0.9, 0.9, 0.2], requires_grad=True)
    smoothed = tolerant_labels(gold, predicted, tolerance=0.25)
    assert smoothed.tolist() == pytest.approx([0.6, 0.25, 0.75, 0.25, 1.0])
    assert not smoothed.requires_grad
    assert torch.equal(tolerant_labels(gold, predicted, tolerance=0.0), gold)


def test_w_acl_loss_gradient_turns_round_where_the_pair_is_far_enough_apart() -> None:
    high, low, gaps = map(torch.tensor, GAPS)
    high.requires_grad_()
    w_acl_loss(high, low, gaps).backward()
    # Pair 0 is too far apart: its positive is pulled down; the others are pushed up.
    assert torch.allclose(high.grad, torch.tensor([0.5, -0.25, -1.0]) / 3)


def test_bcl_loss_gradients_of_negatives_sum_to_that_of_the_positive() -> None:
    # CCL Eq. 15, row by row
    positives, negatives, labels = map(torch.tensor, BCL)
    positives.requires_grad_()
    negatives.requires_grad_()
    bcl_loss(positives, negatives, labels, tau=3.0, sigma=0.5).backward()
    assert torch.allclose(negatives.grad.abs().sum(dim=1), positives.grad.abs())
    assert bool((positives.grad < 0).all())
    # A false negative is not pushed away.
    assert negatives.grad[1, 1] == 0


def test_bcl_loss_one_false_negative_alone_is_zero_with_zero_gradient() -> None:
    positives = torch.tensor([0.5], requires_grad=True)
    loss = bcl_loss(positives, torch.tensor([[0.9]]), torch.tensor([1.0]), tau=3.0, sigma=0.5)
    loss.backward()
    assert loss.item() == pytest.approx(0.0)
    assert positives.grad.item() == pytest.approx(0.0)


def test_negative_weights_equation_11() -> None:
    labels = torch.tensor([1.0, 0.5, 0.25])
    weights = negative_weights(labels, sigma=0.5)
    assert weights.tolist() == [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.75]]
    assert negative_weights(labels, sigma=0.0).diagonal().tolist() == [0.0, 0.0, 0.0]
    assert negative_weights(labels, sigma=1.0).diagonal().tolist() == [0.0, 0.5, 0.75]


@pytest.mark.parametrize(
    "loss",
    [
        lambda s: quad_loss(s[:0], s[:0]),
        lambda s: pair_order_loss(s[:0], s[:0]),
        lambda s: w_acl_loss(s[:0], s[:0], torch.zeros(0)),
        lambda s: cosent_loss(s, torch.tensor([0.5, 0.5])),
        lambda s: ranknet_loss(s, torch.tensor([0.5, 0.5])),
        lambda s: ranking_loss(s, torch.tensor([0.5, 0.6]), [torch.tensor([1, 1])]),
    ],
)
def test_loss_nothing_to_compare_is_zero_with_graph(loss) -> None:
    similarities = torch.tensor([0.3, 0.4], requires_grad=True)
    value = loss(similarities)
    value.backward()
    assert value.item() == 0.0
    assert similarities.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("loss", [mse_loss, correlation_loss, cosent_loss, quad_loss, fdl_loss])
@pytest.mark.parametrize("shapes", [((3,), (2,)), ((2, 2), (2, 2))])
def test_loss_wrong_shapes_raises(loss, shapes) -> None:
    extra = [torch.zeros(shapes[1])] if loss is fdl_loss else []
    with pytest.raises(InputError, match="vectors of one length"):
        loss(*map(torch.zeros, shapes), *extra)
    with pytest.raises(InputError, match="similarities and weights must be vectors"):
        mse_loss(torch.zeros(2), torch.zeros(2), torch.ones(3))
    with pytest.raises(RuntimeError):
        vector_loss(torch.zeros(2, 3), torch.zeros(2, 4))
