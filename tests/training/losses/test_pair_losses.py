from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from condsim.errors import InputError
from condsim.training.losses import (
    acl_loss,
    bcl_loss,
    fdl_loss,
    negative_weights,
    rdl_loss,
    relation_loss,
    vector_loss,
    w_acl_loss,
)

# gap + low - high: 0.5 + 0.1 - 0.9 = -0.3; 0.25 + 0.4 - 0.5 = 0.15; 1 - 0.2 - 0.3 = 0.5
HIGH = torch.tensor([0.9, 0.5, 0.3])
LOW = torch.tensor([0.1, 0.4, -0.2])
GAPS = torch.tensor([0.5, 0.25, 1.0])
PAIRED = (fdl_loss, rdl_loss, acl_loss, w_acl_loss)


def test_fdl_loss_hand_worked_equals() -> None:
    # (0 + 0.15 + 0.5) / 3
    assert fdl_loss(HIGH, LOW, GAPS).item() == pytest.approx(0.65 / 3)


def test_rdl_loss_hand_worked_equals() -> None:
    # (0.3 + 0 + 0) / 3
    assert rdl_loss(HIGH, LOW, GAPS).item() == pytest.approx(0.1)


def test_w_acl_loss_hand_worked_equals() -> None:
    # (0.5 · 0.3 + 0.25 · 0.15 + 1 · 0.5) / 3
    assert w_acl_loss(HIGH, LOW, GAPS).item() == pytest.approx((0.15 + 0.0375 + 0.5) / 3)


def test_acl_loss_is_the_sum_of_fdl_and_rdl() -> None:
    generator = torch.Generator().manual_seed(0)
    high, low = torch.rand(2, 50, generator=generator) * 2 - 1
    gaps = torch.randint(1, 5, (50,), generator=generator) / 4
    both = fdl_loss(high, low, gaps) + rdl_loss(high, low, gaps)
    assert acl_loss(high, low, gaps).item() == pytest.approx(both.item())


def test_w_acl_loss_random_pairs_equals_naive_loop() -> None:
    generator = torch.Generator().manual_seed(1)
    high, low = torch.rand(2, 20, generator=generator) * 2 - 1
    gaps = torch.randint(1, 5, (20,), generator=generator) / 4
    rows = list(zip(high.tolist(), low.tolist(), gaps.tolist(), strict=True))
    naive = sum(gap * abs(gap + n - p) for p, n, gap in rows) / 20
    assert w_acl_loss(high, low, gaps).item() == pytest.approx(naive)


@pytest.mark.parametrize("function", PAIRED)
def test_paired_functions_no_pairs_give_zero_with_a_graph(function) -> None:
    empty = torch.zeros(0, requires_grad=True)
    loss = function(empty, empty, torch.zeros(0))
    loss.backward()
    assert loss.item() == 0


@pytest.mark.parametrize("function", PAIRED)
def test_paired_functions_float16_equals_float32(function) -> None:
    expected = function(HIGH, LOW, GAPS)
    value = function(HIGH.half(), LOW.half(), GAPS)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(expected.item(), abs=1e-3)


@pytest.mark.parametrize("function", PAIRED)
def test_paired_functions_unequal_lengths_raise(function) -> None:
    with pytest.raises(InputError, match=r"high and gaps.*\(3,\) and \(2,\)"):
        function(HIGH, LOW, GAPS[:2])


def test_w_acl_loss_gradient_turns_round_where_the_pair_is_far_enough_apart() -> None:
    high = HIGH.clone().requires_grad_()
    w_acl_loss(high, LOW, GAPS).backward()
    # Pair 0 is too far apart: its positive is pulled down; the others are pushed up.
    assert torch.allclose(high.grad, torch.tensor([0.5, -0.25, -1.0]) / 3)


def test_negative_weights_equation_11() -> None:
    labels = torch.tensor([1.0, 0.5, 0.25])
    weights = negative_weights(labels, sigma=0.5)
    assert weights.tolist() == [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.75]]
    assert negative_weights(labels, sigma=0.0).diagonal().tolist() == [0.0, 0.0, 0.0]
    assert negative_weights(labels, sigma=1.0).diagonal().tolist() == [0.0, 0.5, 0.75]


POSITIVES = torch.tensor([0.8, 0.6])
NEGATIVES = torch.tensor([[0.4, 0.2], [0.0, 0.5]])
LABELS = torch.tensor([0.25, 0.75])


def test_bcl_loss_hand_worked_equals() -> None:
    # τ = 2, σ = 0.5. Row 0: own sentence 2 is hard, weight 0.75; row 1: false negative, weight 0.
    first = math.log(1 + (0.75 * math.exp(0.2) + math.exp(0.1)) / math.exp(0.4))
    second = math.log(1 + (math.exp(0.0) + 0 * math.exp(0.25)) / math.exp(0.3))
    value = bcl_loss(POSITIVES, NEGATIVES, LABELS, tau=2.0, sigma=0.5)
    assert value.item() == pytest.approx((first + second) / 2)


def naive_bcl(positives: Tensor, negatives: Tensor, labels: Tensor, tau: float, s: float) -> float:
    total, rows = 0.0, len(labels)
    for i in range(rows):
        own = math.exp(positives[i] / tau)
        below = own
        for j in range(rows):
            label = labels[i].item()
            alpha = 1.0 if i != j else (0.0 if label >= s else 1 - label)
            below += alpha * math.exp(negatives[i, j] / tau)
        total += -math.log(own / below)
    return total / rows


@pytest.mark.parametrize(("tau", "sigma"), [(0.05, 0.5), (3.0, 0.75), (10.0, 0.0), (5.0, 1.0)])
def test_bcl_loss_random_batch_equals_naive_loop(tau: float, sigma: float) -> None:
    generator = torch.Generator().manual_seed(2)
    positives = torch.rand(7, generator=generator)
    negatives = torch.rand(7, 7, generator=generator) * 2 - 1
    labels = torch.randint(0, 5, (7,), generator=generator) / 4
    value = bcl_loss(positives, negatives, labels, tau=tau, sigma=sigma)
    assert value.item() == pytest.approx(naive_bcl(positives, negatives, labels, tau, sigma))


def test_bcl_loss_gradients_of_negatives_sum_to_that_of_the_positive() -> None:
    # CCL Eq. 15, row by row
    positives = POSITIVES.clone().requires_grad_()
    negatives = NEGATIVES.clone().requires_grad_()
    bcl_loss(positives, negatives, LABELS, tau=3.0, sigma=0.5).backward()
    assert torch.allclose(negatives.grad.abs().sum(dim=1), positives.grad.abs())
    assert bool((positives.grad < 0).all())
    assert negatives.grad[1, 1] == 0  # a false negative is not pushed away


def test_bcl_loss_one_false_negative_alone_is_zero_with_zero_gradient() -> None:
    positives = torch.tensor([0.5], requires_grad=True)
    loss = bcl_loss(positives, torch.tensor([[0.9]]), torch.tensor([1.0]), tau=3.0, sigma=0.5)
    loss.backward()
    assert loss.item() == pytest.approx(0.0)
    assert positives.grad.item() == pytest.approx(0.0)


def test_bcl_loss_float16_equals_float32() -> None:
    expected = bcl_loss(POSITIVES, NEGATIVES, LABELS, tau=0.05, sigma=0.5)
    value = bcl_loss(POSITIVES.half(), NEGATIVES.half(), LABELS, tau=0.05, sigma=0.5)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(expected.item(), abs=0.02)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tau": 0.0}, "τ of BCL must be above 0. got 0.0"),
        ({"tau": float("nan")}, "τ of BCL must be above 0"),
        ({"sigma": 1.5}, r"σ of BCL must be in \[0, 1\]. got 1.5"),
        ({"sigma": float("nan")}, "σ of BCL"),
        ({"negatives": NEGATIVES[:1]}, r"negatives \(rows, rows\)"),
        ({"labels": LABELS[:1]}, r"labels \(rows,\)"),
        ({"positives": torch.zeros(0), "negatives": torch.zeros(0, 0)}, r"positives \(rows,\)"),
    ],
)
def test_bcl_loss_bad_input_raises(changes, message) -> None:
    given = {
        "positives": POSITIVES,
        "negatives": NEGATIVES,
        "labels": LABELS,
        "tau": 3.0,
        "sigma": 0.5,
    }
    with pytest.raises(InputError, match=message):
        bcl_loss(**{**given, **changes})


def test_negative_weights_matrix_of_labels_raises() -> None:
    with pytest.raises(InputError, match="Labels must be a vector"):
        negative_weights(NEGATIVES, sigma=0.5)


def test_relation_loss_hand_worked_equals() -> None:
    # Cosines of the student 0, 0.6, 0.8; of the teacher, in three dimensions, 1, 0, 0
    student = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]])
    teacher = torch.tensor([[1.0, 0.0, 0.0], [5.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    loss = relation_loss(student, teacher)
    assert loss.item() == pytest.approx((1.0 + 0.6**2 + 0.8**2) / 3)
    assert relation_loss(student[:1], teacher[:1]).item() == 0.0


def test_relation_loss_random_equals_naive_loop_and_has_a_gradient() -> None:
    generator = torch.Generator().manual_seed(0)
    student = torch.randn(6, 4, generator=generator).requires_grad_()
    teacher = torch.randn(6, 9, generator=generator)

    def cosine(a: Tensor, b: Tensor) -> Tensor:
        return torch.dot(a, b) / (a.norm() * b.norm())

    squares = [
        (cosine(student[i], student[j]) - cosine(teacher[i], teacher[j])) ** 2
        for i in range(6)
        for j in range(6)
        if i != j
    ]
    loss = relation_loss(student, teacher)
    assert loss.item() == pytest.approx(torch.stack(squares).sum().item() / 30, rel=1e-5)
    loss.backward()
    assert float(student.grad.abs().sum()) > 0  # type: ignore[union-attr]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_teacher_losses_half_precision_equal_float32(dtype: torch.dtype) -> None:
    student = torch.tensor([[1.0, 0.5], [0.25, 2.0], [3.0, 4.0]])
    teacher = torch.tensor([[1.0, 0.0], [0.5, 1.0], [2.0, 2.0]])
    for loss in (vector_loss, relation_loss):
        half = loss(student.to(dtype), teacher.to(dtype))
        assert half.dtype == torch.float32
        assert half.item() == pytest.approx(loss(student, teacher).item(), rel=1e-5)


def test_teacher_losses_wrong_shapes_raise() -> None:
    with pytest.raises(InputError, match=r"of one shape, \(inputs, dim\). got \(2, 3\)"):
        vector_loss(torch.zeros(2, 3), torch.zeros(2, 4))
    with pytest.raises(InputError, match="as many embeddings of the student"):
        relation_loss(torch.zeros(2, 3), torch.zeros(3, 3))
    with pytest.raises(InputError, match="as many embeddings of the student"):
        relation_loss(torch.zeros(0, 3), torch.zeros(0, 3))
