"""The generators (Sun et al., 2022, §3.2.2, Eq. 2): p(c_i | c_<i, c_>i) and two backwards.

``encoder: joint`` is the paper's reading: all given sentences are one input of the encoder.
``encoder: apart`` (the default) encodes each by itself, and the decoder attends to the states of
all, as in Fusion-in-Decoder (Izacard and Grave, 2021). So the states of a sentence at a place are
computed once and shared by every sentence scored in that context, by the three terms of Eq. 3 that
one model computes, and by overlapping contexts; and attention costs the square of one sentence, not
of five. In exchange, sentences do not see each other before the decoder sees them.

Sentence-position embeddings are added to the tokens' embeddings, and the backbone adds embeddings
of token positions (§4.1). The task is a marker added to the decoder's first input, so that encoder
states do not depend on it.

Copies are a pointer to the given sentences (See et al., 2017, Eq. 8-9): contexts differ mostly in
words that recur, which a small Transformer does not learn unless it can point. With a gate g and an
attention of one head, both from the decoder's state, a token's probability is
``(1 - g) p_words(token) + g * (attention on the given tokens that are this token)``.
Not part of SSBC, whose generators are plain Transformers: ``copy: false`` gives those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from condsim.errors import InputError, one_line
from condsim.types import IntArray
from condsim_contexts.corpus import spans
from condsim_contexts.recipe import GENERATOR_TASKS, SHAPES, GeneratorSettings
from condsim_contexts.tokens import EncoderUnits, Items, Vocabulary, length_groups, pad_rows
from condsim_contexts.trainer import best_device

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Cost of a pass whatever its size, in tokens of a tiny model. It is higher where many items are
# scored: few lengths, each split by the tokens it attends to.
_TOKENS_PER_CALL = 400
_TOKENS_PER_SCORING_CALL = 2_000
_MAX_TOKENS_PER_PASS = 8_192
# 128 rows of 8,000.
_LOGITS_PER_BLOCK = 1 << 20
_KEY_SIZE = 64
# An eighth of the probability is for copies at first.
_INITIAL_GATE = -2.0
_UNUSABLE = "Cannot use the backbone of the generators"


class Copies(NamedTuple):
    """Parts that a target token's log-probability is mixed from, each ``(...)`` float32.

    ``own`` is the log of the share of the output words, log(1 - g), and ``copied`` the
    log-probability of the token as a copy, log g included.
    """

    own: Tensor
    copied: Tensor

    def mixed(self, scores: Tensor) -> Tensor:
        """Mix in the log-probabilities of tokens among the output words, ``(...)``."""
        return torch.logaddexp(self.own + scores, self.copied)


class CopyHead(nn.Module):
    """One head of attention on the given tokens, and the gate of its share."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(size, _KEY_SIZE)
        self.key = nn.Linear(size, _KEY_SIZE)
        self.gate = nn.Linear(size, 1)
        nn.init.constant_(self.gate.bias, _INITIAL_GATE)

    def forward(
        self, hidden: Tensor, keys: Tensor, inputs: Tensor, attended: Tensor, targets: Tensor
    ) -> Copies:
        """Look for target tokens, (b, t), by states, (b, t, d), among input tokens, (b, s)."""
        scores = (self.query(hidden) * _KEY_SIZE**-0.5) @ keys.transpose(1, 2)
        scores = scores.float().masked_fill(~attended[:, None], float("-inf"))
        is_copy = (inputs[:, None] == targets[:, :, None]) & attended[:, None]
        # Log of the sum of the softmax over copies; the least float stands for no copy.
        least = torch.finfo(torch.float32).min
        copy_mass = torch.logsumexp(scores.masked_fill(~is_copy, least), dim=-1)
        gate = self.gate(hidden).squeeze(-1).float()
        pointed = copy_mass - torch.logsumexp(scores, dim=-1)
        return Copies(F.logsigmoid(-gate), F.logsigmoid(gate) + pointed)


def target_log_probabilities(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    copies: Copies | None = None,
) -> Tensor:
    """Compute the log-probabilities of targets, (n,) float32; they may be copies.

    Decoder states are (n, d), output embeddings (vocabulary, d). Rows are taken in blocks, whose
    logits fit the processor's cache.
    """
    blocks = []
    size = max(1, _LOGITS_PER_BLOCK // len(weight))
    for rows, block_targets in zip(
        torch.split(hidden, size), torch.split(targets, size), strict=True
    ):
        logits = F.linear(rows, weight, bias).float()
        blocks.append(-F.cross_entropy(logits, block_targets, reduction="none"))
    scores = torch.cat(blocks)
    return scores if copies is None else copies.mixed(scores)


@dataclass(frozen=True)
class Memory:
    """Encoder states of the tokens of u units, and a last row for padding.

    ``keys``, by which copies are found, are None if the model does not copy.
    """

    states: Tensor  # (t + 1, d)
    lengths: IntArray  # (u,)
    tokens: Tensor  # (t + 1,)
    keys: Tensor | None  # (t + 1, 64)

    def rows(self, units: Sequence[tuple[int, ...]]) -> IntArray:
        """List the rows of the units of each item, ``(b, longest)``, padded with the last row."""
        flat = np.array([unit for item in units for unit in item], dtype=np.int64)
        starts, lengths = (np.cumsum(self.lengths) - self.lengths)[flat], self.lengths[flat]
        last_units = np.cumsum([len(item) for item in units]) - 1
        parts = np.split(spans(starts, lengths), np.cumsum(lengths)[last_units][:-1])
        return pad_rows(parts, fill=len(self.states) - 1)[0]


class StateStore:
    """Encoder states of units that come up again; those that come first stay.

    With ``encoder: apart`` contexts that suit one sentence often suit others. Whether states are
    cached or computed again decides memory and speed, not the scores.
    """

    def __init__(self, gigabytes: float) -> None:
        self._room = gigabytes * 10**9
        # Of units by key, each (t, d).
        self.states: dict[int, Tensor] = {}

    def keep(self, key: int, states: Tensor) -> None:
        """Store the states of a unit that has a key, if there is room."""
        if key >= 0 and states.nbytes <= self._room:
            self._room -= states.nbytes
            self.states[key] = states.clone()


class ContextGenerator(nn.Module):
    """A sequence-to-sequence model over the sentences of a context."""

    def __init__(
        self, backbone: PreTrainedModel, settings: GeneratorSettings, vocabulary: Vocabulary
    ) -> None:
        super().__init__()
        # For sentences plain products are faster than the fused kernel of a processor.
        if best_device().type == "cpu":
            backbone.set_attn_implementation("eager")
        self.backbone = backbone
        size = cast("nn.Embedding", backbone.get_input_embeddings()).embedding_dim
        # Zero at first, so that a pre-trained backbone starts unchanged.
        self.places = nn.Parameter(torch.zeros(settings.places, size))
        self.tasks = nn.Parameter(torch.zeros(len(GENERATOR_TASKS), size))
        self.copy = CopyHead(size) if settings.copy else None
        self._pad, self._start = vocabulary.pad_id, vocabulary.start_id

    def encode(self, units: EncoderUnits, store: StateStore | None = None) -> Memory:
        """Encode units that are not in the store, sorted by length and in few passes."""
        stored = store.states if store is not None else {}
        states = {row: stored[key] for row, key in enumerate(units.keys) if key in stored}
        missing = [row for row in range(len(units)) if row not in states]
        for row, encoded in self._encode(units, np.array(missing, dtype=np.int64)):
            states[row] = encoded
            if store is not None:
                store.keep(units.keys[row], encoded)
        parts = [states[row] for row in range(len(units))]
        joined = torch.cat([*parts, self.places.new_zeros(1, self.places.shape[1])])
        lengths = np.array([len(tokens) for tokens in units.tokens], dtype=np.int64)
        tokens = self._tensor(np.concatenate([*units.tokens, [self._pad]]))
        keys = None if self.copy is None else self.copy.key(joined)
        return Memory(joined, lengths, tokens, keys)

    def _encode(self, units: EncoderUnits, chosen: IntArray) -> Iterator[tuple[int, Tensor]]:
        """Encode chosen units; yields each with its states, ``(t, d)``."""
        encoder, embed = self.backbone.get_encoder(), self.backbone.get_input_embeddings()
        lengths = np.array([len(units.tokens[row]) for row in chosen], dtype=np.int64)
        groups = length_groups(lengths, call=_TOKENS_PER_CALL, most=_MAX_TOKENS_PER_PASS)
        for group in groups:
            rows = chosen[group].tolist()
            tokens, inside = pad_rows([units.tokens[row] for row in rows], fill=self._pad)
            places, _ = pad_rows([units.places[row] for row in rows], fill=0)
            mask = None if inside.all() else self._tensor(inside)
            # Unlike indexing, the gradient of F.embedding adds up in the same order every time.
            inputs = embed(self._tensor(tokens)) + F.embedding(self._tensor(places), self.places)
            out = encoder(inputs_embeds=inputs, attention_mask=mask).last_hidden_state
            flat = out.flatten(0, 1) if mask is None else out[mask]
            yield from zip(rows, flat.split(lengths[group].tolist()), strict=True)

    def _decode(
        self, memory: Memory, items: Items, group: IntArray
    ) -> tuple[Tensor, Tensor, Copies | None]:
        """Compute states before each target token, ``(n, d)``, targets and copies, ``(n,)``."""
        padded, inside = pad_rows([items.targets[row] for row in group], fill=self._pad)
        seen = np.full_like(padded, self._start)
        seen[:, 1:] = padded[:, :-1]
        rows = memory.rows([items.units[row] for row in group])
        attended = rows < len(memory.states) - 1
        memory_rows = self._tensor(rows)
        embedded = self.backbone.get_input_embeddings()(self._tensor(seen))
        tasks = self._tensor(np.array([items.tasks[row] for row in group]))
        marker = F.embedding(tasks, self.tasks)
        embedded = torch.cat([embedded[:, :1] + marker[:, None], embedded[:, 1:]], dim=1)
        # Nothing real comes after the padding of a target, so causality alone masks it.
        out = self.backbone.get_decoder()(  # type: ignore[no-untyped-call]
            inputs_embeds=embedded,
            encoder_hidden_states=F.embedding(memory_rows, memory.states),
            encoder_attention_mask=None if attended.all() else self._tensor(attended),
            use_cache=False,
        ).last_hidden_state
        mask, targets = self._tensor(inside), self._tensor(padded)
        copies = None
        if self.copy is not None and memory.keys is not None:
            keys, tokens = F.embedding(memory_rows, memory.keys), memory.tokens[memory_rows]
            all_copies: Copies = self.copy(out, keys, tokens, self._tensor(attended), targets)
            copies = Copies(all_copies.own[mask], all_copies.copied[mask])
        return out[mask], targets[mask], copies

    def output_head(self) -> tuple[float, Tensor, Tensor | None]:
        """Return the scale of decoder states, the output embeddings and their bias."""
        config = self.backbone.config
        head = self.backbone.get_output_embeddings()  # type: ignore[no-untyped-call]
        scale = config.d_model**-0.5 if getattr(config, "scale_decoder_outputs", False) else 1.0
        bias = getattr(self.backbone, "final_logits_bias", None)
        if bias is None:
            bias = head.bias
        # A row of zeros, as in most checkpoints, needs no addition.
        elif not bool(bias.any()):
            bias = None
        return scale, head.weight, None if bias is None else bias.flatten()

    def log_probabilities(self, memory: Memory, items: Items) -> Tensor:
        """Compute log p(target | given) of each item, ``(n,)`` float32."""
        lengths = np.array([len(target) for target in items.targets], dtype=np.int64)
        attended = np.array([memory.lengths[[*units]].sum() for units in items.units])
        sums = torch.zeros(len(items), device=self.places.device)
        scale, weight, bias = self.output_head()
        groups = length_groups(
            lengths, call=_TOKENS_PER_SCORING_CALL, most=_MAX_TOKENS_PER_PASS, attended=attended
        )
        for group in groups:
            hidden, targets, copies = self._decode(memory, items, group)
            scaled = (hidden * scale).to(weight.dtype)
            scores = target_log_probabilities(scaled, weight, bias, targets, copies)
            sums.index_add_(0, self._tensor(np.repeat(group, lengths[group])), scores)
        return sums

    def _tensor(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.places.device)


def new_generator(settings: GeneratorSettings, vocabulary: Vocabulary) -> ContextGenerator:
    """Make a generator to train: seeded random weights, or the backbone's of the settings."""
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        if settings.backbone is None:
            generator = ContextGenerator(_scratch(settings, vocabulary), settings, vocabulary)
            for added in (generator.places, generator.tasks):
                nn.init.normal_(added, std=added.shape[1] ** -0.5)
        else:
            generator = ContextGenerator(_pretrained(settings), settings, vocabulary)
            _check_backbone(generator, settings.backbone, vocabulary)
    return generator


def saved_generator(
    settings: GeneratorSettings, vocabulary: Vocabulary, config: Path
) -> ContextGenerator:
    """Make a generator whose weights are loaded next."""
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    backbone_config = AutoConfig.from_pretrained(config)
    backbone = AutoModelForSeq2SeqLM.from_config(backbone_config)  # type: ignore[no-untyped-call]
    return ContextGenerator(cast("PreTrainedModel", backbone), settings, vocabulary)


def backbone_vocabulary(backbone: str) -> Vocabulary:
    """Load the tokenizer of a pre-trained backbone."""
    from transformers import AutoConfig, AutoTokenizer

    with one_line(f"{_UNUSABLE} {backbone!r}", OSError, ValueError, KeyError):
        tokenizer = AutoTokenizer.from_pretrained(backbone)
        config = AutoConfig.from_pretrained(backbone)
    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is None or tokenizer.eos_token_id is None:
        raise InputError(
            f"{_UNUSABLE} {backbone!r}: its tokenizer must be a fast one with an end token."
        )
    fast.no_truncation()
    fast.no_padding()
    end, start = tokenizer.eos_token_id, config.decoder_start_token_id
    numbers = (tokenizer.pad_token_id, start, end, tokenizer.sep_token_id)
    pad, start, end, separator = (end if number is None else number for number in numbers)
    return Vocabulary(fast, "", pad, start, end, separator)


def _scratch(settings: GeneratorSettings, vocabulary: Vocabulary) -> PreTrainedModel:
    from transformers import BartConfig, BartForConditionalGeneration

    shape = SHAPES[settings.size]
    return BartForConditionalGeneration(
        BartConfig(
            vocab_size=len(vocabulary),
            d_model=shape.width,
            encoder_layers=shape.layers,
            decoder_layers=shape.layers,
            encoder_ffn_dim=shape.inner,
            decoder_ffn_dim=shape.inner,
            encoder_attention_heads=shape.heads,
            decoder_attention_heads=shape.heads,
            dropout=settings.dropout,
            attention_dropout=0.0,
            # As Vaswani et al.; the library's default of 0.02 comes from BART-large.
            init_std=shape.width**-0.5,
            max_position_embeddings=settings.positions,
            pad_token_id=vocabulary.pad_id,
            bos_token_id=vocabulary.start_id,
            eos_token_id=vocabulary.end_id,
            decoder_start_token_id=vocabulary.start_id,
            forced_eos_token_id=vocabulary.end_id,
        )
    )


def _pretrained(settings: GeneratorSettings) -> PreTrainedModel:
    from transformers import AutoModelForSeq2SeqLM

    name = str(settings.backbone)
    with one_line(f"{_UNUSABLE} {name!r}", OSError, ValueError):
        loaded = AutoModelForSeq2SeqLM.from_pretrained(name, dtype=torch.float32)
    backbone = cast("PreTrainedModel", loaded)
    positions = getattr(backbone.config, "max_position_embeddings", None)
    if positions is not None and positions < settings.positions:
        raise InputError(
            f"{_UNUSABLE} {name!r}: it has {positions} token positions and the settings need "
            f"{settings.positions}. Lower 'max_tokens', or use encoder 'apart'."
        )
    return backbone


def _check_backbone(generator: ContextGenerator, name: str, vocabulary: Vocabulary) -> None:
    """Compare the logits of the generator with the logits of the backbone itself."""
    backbone = generator.backbone
    tokens = torch.tensor([[vocabulary.end_id, vocabulary.separator_id, vocabulary.end_id]])
    generator.eval()
    with torch.inference_mode():
        out = backbone(input_ids=tokens, decoder_input_ids=tokens)
        embedded = backbone.get_input_embeddings()(tokens)
        own = backbone(
            inputs_embeds=embedded, decoder_inputs_embeds=embedded, output_hidden_states=True
        )
        scale, weight, bias = generator.output_head()
        logits = F.linear(own.decoder_hidden_states[-1] * scale, weight, bias)
    states = own.encoder_last_hidden_state, out.encoder_last_hidden_state
    for mine, theirs in (states, (logits, out.logits)):
        if not torch.allclose(mine, theirs, rtol=1e-3, atol=1e-3):
            raise InputError(
                f"{_UNUSABLE} {name!r}: it does more to its tokens than look up their embeddings, "
                "or to its decoder states than multiply them by the output embeddings. Take one "
                "such as T5 or BART."
            )
