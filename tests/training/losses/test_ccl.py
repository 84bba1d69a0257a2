from __future__ import annotations

import textwrap

import pytest
import torch
import torch.nn.functional as F

from condsim.errors import InputError
from condsim.model.builders import build_bi_encoder
from condsim.model.tri_encoder import build_tri_encoder
from condsim.training.losses.contrastive import BCLLoss, CMSELoss, FDLLoss, RDLLoss, WACLLoss
from condsim.training.losses.functional import bcl_loss
from condsim.training.losses.similarity import MSELoss
from condsim.training.losses.weighted import CCLLoss, WeightedSumLoss

# Rows 0 and 1 are one sentence pair, row 2 has no partner; the similarities are 1.0, 0.6, 0.0.
LABELS = torch.tensor([[1.0, 4.0], [0.25, 4.0], [0.25, -1.0]])
TERMS = ["w-acl", "bcl", "mse", "c-mse"]


def identity_head(loss) -> None:
    """Makes g the identity on vectors of no negative number."""
    for layer in (loss.head.layers[0], loss.head.layers[2]):
        torch.nn.init.eye_(layer.weight)
        torch.nn.init.zeros_(layer.bias)


def test_w_acl_loss_hand_worked_equals(table_encoder, columns) -> None:
    # One pair, gap 0.75: 0.75 · |0.75 + 0.6 - 1.0| = 0.2625
    assert WACLLoss(table_encoder)(columns, LABELS).item() == pytest.approx(0.2625)
    assert FDLLoss(table_encoder)(columns, LABELS).item() == pytest.approx(0.35)
    assert RDLLoss(table_encoder)(columns, LABELS).item() == pytest.approx(0.0)


def test_c_mse_loss_identity_head_equals_mse(table_encoder, columns) -> None:
    loss = CMSELoss(table_encoder)
    identity_head(loss)
    expected = MSELoss(table_encoder)(columns, LABELS)
    assert loss(columns, LABELS).item() == pytest.approx(expected.item())


def test_bcl_loss_identity_head_equals_function(table_encoder, columns) -> None:
    loss = BCLLoss(table_encoder, tau=2.0, sigma=0.5)
    identity_head(loss)
    # No dropout in the table: the second view is the first. Sentence 1 is row 0 of the table in
    # every row, so its cosine with the sentences 2 is 1.0, 0.6, 0.0 whatever the row.
    negatives = torch.tensor([[1.0, 0.6, 0.0]] * 3)
    expected = bcl_loss(torch.ones(3), negatives, LABELS[:, 0], tau=2.0, sigma=0.5)
    assert loss(columns, LABELS).item() == pytest.approx(expected.item(), rel=1e-5)
    assert table_encoder.forwards == 2


def test_ccl_loss_is_the_weighted_sum_of_its_terms(table_encoder, columns) -> None:
    loss = CCLLoss(table_encoder, w_acl=2.0, bcl=0.5, mse=3.0, c_mse=0.25, tau=3.0, sigma=0.75)
    terms = loss(columns, LABELS)
    alone = {
        "w-acl": 2.0 * WACLLoss(table_encoder)(columns, LABELS),
        "mse": 3.0 * MSELoss(table_encoder)(columns, LABELS),
    }
    for name, weight, other in (
        ("bcl", 0.5, BCLLoss(table_encoder, tau=3.0, sigma=0.75)),
        ("c-mse", 0.25, CMSELoss(table_encoder)),
    ):
        other.head.load_state_dict(loss.head.state_dict())
        alone[name] = weight * other(columns, LABELS)
    assert {name: term.item() for name, term in terms.items()} == pytest.approx(
        {name: term.item() for name, term in alone.items()}
    )


@pytest.mark.parametrize(
    ("zero", "forwards", "head"),
    [({"bcl": 0}, 1, True), ({"bcl": 0, "c_mse": 0}, 1, False), ({"mse": 0}, 2, True)],
)
def test_ccl_loss_term_of_weight_zero_costs_nothing(
    table_encoder, columns, zero, forwards, head
) -> None:
    loss = CCLLoss(table_encoder, **zero)
    terms = loss(columns, LABELS)
    assert sorted(terms) == sorted(set(TERMS) - {name.replace("_", "-") for name in zero})
    assert table_encoder.forwards == forwards
    assert (loss.head is not None) == head


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"w_acl": -1.0}, "weight of objective 'w-acl' must be at least 0"),
        (dict.fromkeys(("w_acl", "bcl", "mse", "c_mse"), 0.0), "At least one objective"),
        ({"tau": 0.0}, "'tau' must be above 0"),
        ({"sigma": -0.1}, "'sigma' must be at least 0"),
    ],
)
def test_ccl_loss_bad_numbers_raise(table_encoder, changes, message) -> None:
    with pytest.raises(InputError, match=message):
        CCLLoss(table_encoder, **changes)


def test_paired_loss_labels_without_pair_ids_raises(table_encoder, columns) -> None:
    with pytest.raises(InputError, match="WACLLoss compares two rows of one sentence pair"):
        WACLLoss(table_encoder)(columns, LABELS[:, 0])


@pytest.mark.parametrize("encoder", ["bi", "hadamard", "concat"])
def test_ccl_loss_real_encoder_second_view_differs_and_gradients_flow(
    tiny_backbone, encoder
) -> None:
    torch.manual_seed(0)
    if encoder == "bi":
        model = build_bi_encoder(str(tiny_backbone), dropout=0.3)
    else:
        model = build_tri_encoder(str(tiny_backbone), fusion=encoder, dropout=0.3)
    model.train()
    columns = [
        model.preprocess([("the sport", "A man throws a ball."), ("the animal", "A dog runs.")]),
        model.preprocess([("the sport", "A girl kicks a ball."), ("the animal", "A cat runs.")]),
    ]
    seen = []
    loss = CCLLoss(model)
    loss.head.register_forward_hook(lambda _, inputs, __: seen.extend(inputs[0]))
    sum(loss(columns, torch.tensor([[1.0, 0.0], [0.25, 0.0]])).values()).backward()
    first, _, view = seen
    assert bool((F.cosine_similarity(first, view) < 0.9999).all())
    for name, weight in loss.named_parameters():
        # BERT's own pooler is not in use
        if ".pooler." not in name:
            assert weight.grad is not None, name
            assert bool(weight.grad.isfinite().all()), name
    assert all(float(weight.grad.abs().sum()) > 0 for weight in loss.head.parameters())


def test_ccl_loss_bfloat16_autocast_equals_float32(tiny_backbone) -> None:
    model = build_bi_encoder(str(tiny_backbone), dropout=0.0)
    columns = [
        model.preprocess([("the sport", "A man throws a ball."), ("the animal", "A dog runs.")]),
        model.preprocess([("the sport", "A girl kicks a ball."), ("the animal", "A cat runs.")]),
    ]
    loss, labels = CCLLoss(model), torch.tensor([[1.0, 0.0], [0.25, 0.0]])
    exact = loss([dict(column) for column in columns], labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = loss([dict(column) for column in columns], labels)
    for name in TERMS:
        assert rough[name].dtype == torch.float32
        assert rough[name].item() == pytest.approx(exact[name].item(), abs=0.05)


def test_bcl_loss_bfloat16_autocast_keeps_the_projected_space_in_float32(
    table_encoder, columns
) -> None:
    loss = BCLLoss(table_encoder, tau=0.05)
    exact = loss(columns, LABELS).item()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert loss(columns, LABELS).item() == exact


def test_weighted_sum_loss_projection_head_is_no_part_of_the_model(tiny_backbone) -> None:
    model = build_bi_encoder(str(tiny_backbone))
    before = set(model.state_dict())
    loss = WeightedSumLoss(model, {"bcl": 1.0})
    assert set(model.state_dict()) == before
    assert len(list(loss.head.parameters())) == 4


@pytest.mark.slow
def test_projection_head_two_processes_average_their_gradients(tmp_path, two_processes) -> None:
    script = tmp_path / "two.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys, torch
            from condsim.training.losses.contrastive import ProjectionHead
            torch.distributed.init_process_group("gloo")
            rank = torch.distributed.get_rank()
            torch.manual_seed(0)
            head = ProjectionHead(4)
            batches = [torch.ones(2, 4), torch.arange(8.0).reshape(2, 4)]
            for step in range(2):  # accumulated over two steps
                head([batches[rank], batches[rank]])[0].square().sum().backward()
            torch.save([p.grad for p in head.parameters()], f"{sys.argv[1]}/{rank}.pt")
            del head  # it holds the group, whose threads must not outlive it
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
        for given, expected in zip(together, alone, strict=True):
            assert torch.allclose(given, expected, rtol=1e-5)
