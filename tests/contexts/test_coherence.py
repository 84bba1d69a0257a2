"""The coherence model: its vectors, its head and its replacements."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from condsim.contexts.coherence.model import CoherenceModel
from condsim.contexts.coherence.training import Passages, batch_of
from condsim.contexts.settings import CoherenceSettings
from condsim.errors import InputError

TOKENS = [np.array(ids) for ids in ([5, 6, 7, 8, 9], [3], [4, 4, 2], [9, 8, 7], [2, 6], [1, 5, 3])]


def small_model(head="mlp", **settings) -> CoherenceModel:
    torch.manual_seed(0)
    sizes = {"embedding": 8, "hidden": 6, "head_size": 5}
    model = CoherenceModel(CoherenceSettings(head=head, **sizes, **settings), tokens=10, pad=0)
    torch.nn.init.normal_(model.missing)
    torch.nn.init.normal_(model.bias)
    return model.eval()


def test_encode_is_the_last_states_of_a_packed_bidirectional_lstm():
    model = small_model()
    both = torch.nn.LSTM(8, 6, batch_first=True, bidirectional=True)
    own = dict(model.forwards.named_parameters())
    own |= {f"{key}_reverse": value for key, value in model.backwards.named_parameters()}
    both.load_state_dict(own)
    vectors = model.encode(TOKENS)
    assert vectors.shape == (6, 12)
    for row, ids in enumerate(TOKENS):
        _, (last, _) = both(model.embeddings(torch.from_numpy(ids))[None])
        torch.testing.assert_close(vectors[row], torch.cat([last[0, 0], last[1, 0]]))


def test_encode_company_and_order_have_no_effect(monkeypatch):
    model = small_model()
    together = model.encode(TOKENS)
    monkeypatch.setattr("condsim.contexts.coherence.model._GROUP", 2)
    torch.testing.assert_close(model.encode(TOKENS[::-1]).flip(0), together)
    torch.testing.assert_close(model.encode(TOKENS[2:3])[0], together[2])


def test_encode_empty_sentence_has_a_vector():
    assert small_model().encode([np.array([], dtype=np.int64)]).shape == (1, 12)
    assert small_model().encode([]).shape == (0, 12)


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_logits_are_those_of_the_concatenation(head):
    model = small_model(head)
    vectors = model.encode(TOKENS)
    neighbours = torch.tensor([[-1, 0, 2, 3], [1, 2, 4, -1]])
    centres = torch.tensor([1, 3])
    projections = model.projections(vectors)
    found = model.logits(
        model.context(projections, neighbours), projections[model.settings.left][centres]
    )
    for row in range(2):
        around = [vectors[i] if i >= 0 else model.missing for i in neighbours[row]]
        joined = torch.cat([*around[:2], vectors[centres[row]], *around[2:]])  # [h_<i, h_i, h_>i]
        total = joined @ model.project.flatten(0, 1) + model.bias
        wanted = total[0] if head == "linear" else model.output(torch.relu(total))[0]
        torch.testing.assert_close(found[row], wanted)


def test_linear_head_ranks_contexts_alike_for_every_sentence_and_mlp_does_not():
    orders = {}
    for head in ("linear", "mlp"):
        model = small_model(head)
        vectors = model.encode(TOKENS) * 4
        projections = model.projections(vectors)
        generator = torch.Generator().manual_seed(1)
        contexts = model.context(projections, torch.randint(-1, 6, (200, 4), generator=generator))
        logits = [model.logits(contexts, sentence) for sentence in projections[2][:6]]
        orders[head] = {tuple(scores.argsort(stable=True).tolist()) for scores in logits}
    assert len(orders["linear"]) == 1
    assert len(orders["mlp"]) > 1


def test_settings_out_of_range_is_an_error():
    with pytest.raises(InputError, match="'left' and 'right'"):
        CoherenceSettings(left=0, right=0)
    with pytest.raises(InputError, match=r"'epochs' must be at least 1\. Got 0"):
        CoherenceSettings(epochs=0)


def test_passages_long_document_is_cut_with_neighbours_kept():
    starts = np.array([0, 10, 11, 17])
    passages = Passages.of_documents(starts, np.array([True] * 3), most=5, left=2, right=1)
    parts = (passages.first, passages.last, passages.low, passages.high)
    rows = list(map(tuple, np.stack(parts, axis=1).tolist()))
    assert rows == [(0, 5, 0, 6), (5, 10, 3, 10), (11, 14, 11, 15), (14, 17, 12, 17)]


def test_batches_hold_every_passage_once():
    passages = Passages.of_documents(
        np.arange(0, 101, 10), np.ones(10, bool), most=7, left=2, right=2
    )
    order = np.random.default_rng(0).permutation(len(passages))
    batches = passages.batches(order, sentences=20)
    np.testing.assert_array_equal(np.concatenate(batches), order)
    assert all(passages.sizes[batch].sum() >= 20 for batch in batches[:-1])


def test_batch_replacements_are_half_of_the_document_and_never_the_centre():
    starts = np.array([0, 12, 30, 34])
    passages = Passages.of_documents(starts, np.array([True] * 3), most=8, left=2, right=2)
    document = np.searchsorted(starts, np.arange(34), side="right")
    chosen = np.arange(len(passages))
    batch = batch_of(passages, chosen, np.random.default_rng(3), left=2, right=2)
    centres, replacements = batch.sentences[batch.centres], batch.sentences[batch.replacements]
    np.testing.assert_array_equal(np.sort(centres), np.arange(34))
    same = batch.same_document
    assert abs(same.sum() - 17) <= 2
    assert (document[centres[same]] == document[replacements[same]]).all()
    assert (batch.centres != batch.replacements).all()
    # What stands around a centre is what the corpus has there.
    for centre, near in zip(centres, batch.neighbours, strict=True):
        for offset, row in zip((-2, -1, 1, 2), near, strict=True):
            inside = 0 <= centre + offset < 34 and document[centre + offset] == document[centre]
            assert (row >= 0) == inside
            assert row < 0 or batch.sentences[row] == centre + offset


def test_batch_of_one_passage_takes_replacements_from_it():
    passages = Passages.of_documents(np.array([0, 2]), np.array([True]), most=8, left=2, right=2)
    batch = batch_of(passages, np.array([0]), np.random.default_rng(0), left=2, right=2)
    assert batch.same_document.all()
    np.testing.assert_array_equal(batch.replacements, batch.centres[::-1])
