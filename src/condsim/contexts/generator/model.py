"""The generators (Sun et al., 2022, §3.2.2, Eq. 2): p(c_i | c_<i, c_>i) and two backwards."""

# ``encoder: joint`` is the paper's reading: all given sentences are one input of the encoder.
# ``encoder: apart`` (the default) encodes each by itself, and the decoder attends to the states of
# all, as in Fusion-in-Decoder (Izacard and Grave, 2021). So the states of a sentence at a place are
# computed once and shared by every sentence scored in that context, by the three terms of Eq. 3
# that one model computes, and by overlapping contexts; and attention costs the square of one
# sentence, not of five. In exchange, sentences do not see each other before the decoder sees them.
# Sentence-position embeddings are added to those of the tokens, and the backbone adds those of the
# token positions (§4.1). The task is a marker added to the decoder's first input, so that encoder
# states do not depend on it.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor, nn

from condsim.contexts.corpus.stored import spans
from condsim.contexts.corpus.vocabulary import Vocabulary
from condsim.contexts.generator.items import ItemBuilder, Items, Units, length_groups, ragged
from condsim.contexts.generator.probabilities import (
    Copied,
    CopyHead,
    mean_cross_entropy,
    target_log_probabilities,
)
from condsim.contexts.models import best_device
from condsim.contexts.settings import GENERATOR_TASKS, SHAPES, GeneratorSettings
from condsim.errors import InputError, ModelError
from condsim.types import IntArray

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_CALL = 400  # what a pass costs whatever its size, in tokens of a tiny model
_SCORED_CALL = 2_000  # more where many are scored: few lengths, each split by what it attends to
_TOKENS = 8_192  # of a pass at most


@dataclass(frozen=True)
class Memory:
    """Encoder states of the tokens of u units, and a last row for padding."""

    states: Tensor  # (t + 1, d)
    starts: IntArray  # (u,), first row of each unit
    lengths: IntArray  # (u,)
    tokens: Tensor  # (t + 1,)
    keys: Tensor | None  # (t + 1, 64), by which copies are found; None if the model does not copy

    def rows(self, units: Sequence[tuple[int, ...]]) -> IntArray:
        """Rows of ``states`` of the units of each item, ``(b, longest)``, padded with its last."""
        flat = np.array([unit for item in units for unit in item], dtype=np.int64)
        lengths = self.lengths[flat]
        last_units = np.cumsum([len(item) for item in units]) - 1
        parts = np.split(spans(self.starts[flat], lengths), np.cumsum(lengths)[last_units][:-1])
        return ragged(parts, fill=len(self.states) - 1)[0]


class StateStore:
    """Encoder states of units that come up again; those that come first stay."""

    # With ``encoder: apart`` contexts that suit one sentence often suit others. Whether states are
    # kept or computed anew decides memory and speed, not the scores.

    def __init__(self, gigabytes: float) -> None:
        self._bytes = int(gigabytes * 10**9)
        self._starts: dict[int, int] = {}
        self._states = torch.empty(0, 0)  # as wide as the states that come
        self._used = 0

    def starts(self, keys: Sequence[int]) -> IntArray:
        """First row of each unit in the store, ``(u,)``; -1 where it is not kept."""
        return np.array([self._starts.get(key, -1) for key in keys], dtype=np.int64)

    def take(self, rows: IntArray) -> Tensor:
        """States at rows of the store, ``(t, d)``."""
        return self._states[torch.from_numpy(rows).to(self._states.device)]

    def keep(self, keys: Sequence[int], lengths: IntArray, states: Tensor) -> None:
        """Keeps units while there is room: the states, ``(t, d)``, of all their tokens in order."""
        if not len(self._states):
            rows = self._bytes // (states.shape[1] * states.element_size())
            self._states = states.new_empty(rows, states.shape[1])
        wanted = np.array(keys, dtype=np.int64) >= 0
        ends = self._used + np.cumsum(np.where(wanted, lengths, 0))
        wanted &= ends <= len(self._states)
        taken = np.repeat(wanted, lengths)
        end = self._used + int(taken.sum())
        self._states[self._used : end] = states[torch.from_numpy(taken).to(states.device)]
        for unit in np.flatnonzero(wanted).tolist():
            self._starts[keys[unit]] = int(ends[unit] - lengths[unit])
        self._used = end


class ContextGenerator(nn.Module):
    """A sequence-to-sequence model over the sentences of a context."""

    def __init__(
        self, backbone: PreTrainedModel, settings: GeneratorSettings, vocabulary: Vocabulary
    ) -> None:
        super().__init__()
        if best_device().type == "cpu":  # for sentences plain products beat its fused kernel
            backbone.set_attn_implementation("eager")
        self.backbone = backbone
        size = cast("nn.Embedding", backbone.get_input_embeddings()).embedding_dim
        # Zero at first: a pre-trained backbone starts as what it is.
        self.places = nn.Parameter(torch.zeros(settings.places, size))
        self.tasks = nn.Parameter(torch.zeros(len(GENERATOR_TASKS), size))
        self.copy = CopyHead(size) if settings.copy else None
        self._pad, self._start = vocabulary.pad_id, vocabulary.start_id

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.places.device

    def encode(self, units: Units, store: StateStore | None = None) -> Memory:
        """Encodes units, sorted by length and in few passes."""
        lengths = np.array([len(tokens) for tokens in units.tokens], dtype=np.int64)
        kept = np.full(len(lengths), -1) if store is None else store.starts(units.keys)
        known, fresh = np.flatnonzero(kept >= 0), np.flatnonzero(kept < 0)
        order, states = self._encode(units, fresh, lengths)
        if store is not None and len(order):
            store.keep([units.keys[row] for row in order], lengths[order], states)
        if store is not None and len(known):
            states = torch.cat([store.take(spans(kept[known], lengths[known])), states])
            order = np.concatenate([known, order])
        starts = np.zeros(len(lengths), dtype=np.int64)
        starts[order] = np.cumsum(lengths[order]) - lengths[order]
        joined = torch.cat([states, states.new_zeros(1, states.shape[1])])
        ids = [units.tokens[row] for row in order]
        tokens = self._tensor(np.concatenate([*ids, [self._pad]]))
        keys = None if self.copy is None else self.copy.key(joined)
        return Memory(joined, starts, lengths, tokens, keys)

    def _encode(self, units: Units, chosen: IntArray, lengths: IntArray) -> tuple[IntArray, Tensor]:
        """The chosen units in the order they were encoded in, and their states, ``(t, d)``."""
        encoder, embed = self.backbone.get_encoder(), self.backbone.get_input_embeddings()
        states, order = [], []
        for rows in length_groups(lengths[chosen], call=_CALL, most=_TOKENS):
            group = chosen[rows]
            tokens, inside = ragged([units.tokens[row] for row in group], fill=self._pad)
            places, _ = ragged([units.places[row] for row in group], fill=0)
            kept = self._tensor(inside)
            given = embed(self._tensor(tokens)) + self.places[self._tensor(places)]
            mask = None if inside.all() else kept
            out = encoder(inputs_embeds=given, attention_mask=mask).last_hidden_state
            states.append(out[kept] if mask is not None else out.flatten(0, 1))
            order.append(group)
        if not states:
            return chosen, self.places.new_zeros(0, self.places.shape[1])
        return np.concatenate(order), torch.cat(states)

    def _decode(
        self, memory: Memory, items: Items, group: IntArray
    ) -> tuple[Tensor, Tensor, Copied | None]:
        """States before each target token, ``(n, d)``, those tokens and their copies, ``(n,)``."""
        wanted, inside = ragged([items.targets[row] for row in group], fill=self._pad)
        seen = np.full_like(wanted, self._start)
        seen[:, 1:] = wanted[:, :-1]
        rows = memory.rows([items.units[row] for row in group])
        attended = rows < len(memory.states) - 1
        places = self._tensor(rows)
        embedded = self.backbone.get_input_embeddings()(self._tensor(seen))
        marker = self.tasks[self._tensor(np.array([items.tasks[row] for row in group]))]
        embedded = torch.cat([embedded[:, :1] + marker[:, None], embedded[:, 1:]], dim=1)
        # Nothing real comes after the padding of a target, so causality alone masks it.
        out = self.backbone.get_decoder()(  # type: ignore[no-untyped-call]
            inputs_embeds=embedded,
            encoder_hidden_states=memory.states[places],
            encoder_attention_mask=None if attended.all() else self._tensor(attended),
            use_cache=False,
        ).last_hidden_state
        kept, targets = self._tensor(inside), self._tensor(wanted)
        mixture = None
        if self.copy is not None and memory.keys is not None:
            found: Copied = self.copy(
                out, memory.keys[places], memory.tokens[places], self._tensor(attended), targets
            )
            mixture = Copied(found.own[kept], found.copied[kept])
        return out[kept], targets[kept], mixture

    def _head(self) -> tuple[float, Tensor, Tensor | None]:
        """What decoder states are scaled by, the output embeddings and their bias."""
        config = self.backbone.config
        head = self.backbone.get_output_embeddings()  # type: ignore[no-untyped-call]
        scale = config.d_model**-0.5 if getattr(config, "scale_decoder_outputs", False) else 1.0
        bias = getattr(self.backbone, "final_logits_bias", None)
        if bias is None:
            bias = head.bias
        elif not bool(bias.any()):  # a row of zeros, which is what most checkpoints have
            bias = None
        return scale, head.weight, None if bias is None else bias.flatten()

    def loss(self, units: Units, items: Items) -> Tensor:
        """Mean negative log-probability of all target tokens, a scalar."""
        memory = self.encode(units)
        lengths = np.array([len(target) for target in items.targets], dtype=np.int64)
        groups = length_groups(lengths, call=_CALL, most=_TOKENS)
        parts = [self._decode(memory, items, group) for group in groups]
        scale, weight, bias = self._head()
        hidden = torch.cat([states for states, _, _ in parts]) * scale
        targets = torch.cat([ids for _, ids, _ in parts])
        copies = [copy for _, _, copy in parts if copy is not None]
        mixture = None
        if copies:
            mixture = Copied(*(torch.cat(part) for part in zip(*copies, strict=True)))
        return mean_cross_entropy(hidden, weight, bias, targets, mixture)

    def log_probabilities(self, memory: Memory, items: Items) -> Tensor:
        """Log p(target | given) of each item, ``(n,)`` float32; no gradient."""
        lengths = np.array([len(target) for target in items.targets], dtype=np.int64)
        flat = np.array([unit for units in items.units for unit in units], dtype=np.int64)
        firsts = np.cumsum([0, *(len(units) for units in items.units[:-1])])
        attended = np.add.reduceat(memory.lengths[flat], firsts) if len(items) else lengths
        found = torch.zeros(len(items), device=self.device)
        scale, weight, bias = self._head()
        groups = length_groups(lengths, call=_SCORED_CALL, most=_TOKENS, attended=attended)
        for group in groups:
            hidden, targets, mixture = self._decode(memory, items, group)
            scores = target_log_probabilities(
                (hidden * scale).to(weight.dtype), weight, bias, targets
            )
            if mixture is not None:
                scores = mixture.mixed(scores)
            rows = self._tensor(np.repeat(group, lengths[group]))
            found.index_add_(0, rows, scores)
        return found

    def token_scores(self, units: Units, items: Items) -> Tensor:
        """Log-probabilities of the first item's targets by the backbone's own forward pass."""
        # Slow: a reference for :meth:`log_probabilities`.
        embed, target = self.backbone.get_input_embeddings(), self._tensor(items.targets[0])
        states = [
            self.backbone.get_encoder()(
                inputs_embeds=(
                    embed(self._tensor(units.tokens[unit]))
                    + self.places[self._tensor(units.places[unit])]
                )[None]
            ).last_hidden_state
            for unit in items.units[0]
        ]
        embedded = embed(self._tensor(np.array([self._start, *items.targets[0][:-1]])))
        embedded = torch.cat([embedded[:1] + self.tasks[items.tasks[0]], embedded[1:]])
        given = torch.cat(states, dim=1)
        out = self.backbone(
            encoder_outputs=(given,),
            decoder_inputs_embeds=embedded[None],
            use_cache=False,
            output_hidden_states=True,
        )
        chances = out.logits[0].float().log_softmax(dim=-1)
        scores: Tensor = chances.gather(1, target[:, None])[:, 0]
        if self.copy is not None:
            tokens = self._tensor(np.concatenate([units.tokens[unit] for unit in items.units[0]]))
            found: Copied = self.copy(
                out.decoder_hidden_states[-1],
                self.copy.key(given),
                tokens[None],
                torch.ones_like(tokens[None], dtype=torch.bool),
                target[None],
            )
            scores = Copied(found.own[0], found.copied[0]).mixed(scores)
        return scores

    def _tensor(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device)


def new_generator(settings: GeneratorSettings, vocabulary: Vocabulary) -> ContextGenerator:
    """Makes a generator to train: random weights, or those of the settings' backbone.

    Args:
        settings: What to make; its seed decides random weights.
        vocabulary: The tokenizer of the corpus, or of the backbone.

    Raises:
        InputError: If the backbone cannot be loaded, or its logits are not what its output
            embeddings make of its decoder states.
    """
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        pretrained = settings.backbone is not None
        backbone = _pretrained(settings) if pretrained else _scratch(settings, vocabulary)
        generator = ContextGenerator(backbone, settings, vocabulary)
        if not pretrained:
            for added in (generator.places, generator.tasks):
                nn.init.normal_(added, std=added.shape[1] ** -0.5)
    if pretrained:
        _check(generator, settings, vocabulary)
    return generator


def saved_generator(
    settings: GeneratorSettings, vocabulary: Vocabulary, config: Path
) -> ContextGenerator:
    """Makes a generator whose weights are loaded next."""
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    try:
        read = AutoConfig.from_pretrained(config)
    except (OSError, ValueError) as error:
        raise ModelError(f"{config} holds no model: {error}. Train it anew.") from error
    loaded = AutoModelForSeq2SeqLM.from_config(read)  # type: ignore[no-untyped-call]
    return ContextGenerator(cast("PreTrainedModel", loaded), settings, vocabulary)


def backbone_vocabulary(settings: GeneratorSettings, folder: Path) -> Vocabulary:
    """Takes the tokenizer of a pre-trained backbone."""
    from transformers import AutoConfig, AutoTokenizer

    name = str(settings.backbone)
    try:
        tokenizer, config = AutoTokenizer.from_pretrained(name), AutoConfig.from_pretrained(name)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"Cannot load the backbone {name!r}: {_one_line(error)}") from error
    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is None or tokenizer.eos_token_id is None:
        raise InputError(
            f"The tokenizer of {name!r} cannot be used: it must be a fast one with an end token."
        )
    fast.no_truncation()
    fast.no_padding()
    end, start = tokenizer.eos_token_id, config.decoder_start_token_id
    known = (tokenizer.pad_token_id, start, end, tokenizer.sep_token_id)
    pad, start, end, separator = (end if number is None else number for number in known)
    return Vocabulary.new(fast, folder, corpus="", ids=(pad, start, end, separator))


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
            init_std=shape.width**-0.5,  # as Vaswani et al.; the library's 0.02 is BART-large's
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

    try:
        loaded = AutoModelForSeq2SeqLM.from_pretrained(str(settings.backbone), dtype=torch.float32)
    except (OSError, ValueError) as error:
        raise InputError(
            f"Cannot load the backbone {settings.backbone!r} as an encoder-decoder: "
            f"{_one_line(error)}"
        ) from error
    backbone = cast("PreTrainedModel", loaded)
    most = getattr(backbone.config, "max_position_embeddings", None)
    if most is not None and most < settings.positions:
        raise InputError(
            f"The backbone {settings.backbone!r} has {most} token positions and the settings need "
            f"{settings.positions}: lower 'max_tokens', or use encoder 'apart'."
        )
    return backbone


def _check(
    generator: ContextGenerator, settings: GeneratorSettings, vocabulary: Vocabulary
) -> None:
    """Compares what the generator computes with what the backbone itself does."""
    embed, encoder = generator.backbone.get_input_embeddings(), generator.backbone.get_encoder()
    ids = [vocabulary.end_id, vocabulary.separator_id, vocabulary.end_id]
    tokens = torch.tensor([ids])
    generator.eval()
    with torch.inference_mode():
        states = encoder(input_ids=tokens).last_hidden_state
        given = encoder(inputs_embeds=embed(tokens)).last_hidden_state
    if not torch.allclose(states, given, rtol=1e-3, atol=1e-3):
        raise InputError(
            f"The encoder of the backbone {settings.backbone!r} does more to its tokens than look "
            "up their embeddings, as Pegasus and Marian do. Use another, such as T5 or BART."
        )
    sentences = {number: np.array(ids[: number + 1]) for number in range(3)}
    builder = ItemBuilder(sentences, settings, vocabulary)
    builder.add("centre", 0, (1, *[-1] * (settings.places - 3), 2))
    with torch.inference_mode():
        own = generator.loss(builder.units, builder.items)
        wanted = -generator.token_scores(builder.units, builder.items).mean()
    if not torch.isclose(own, wanted, rtol=1e-3, atol=1e-3):
        raise InputError(
            f"The backbone {settings.backbone!r} computes its logits in a way condsim does not "
            "know: not its output embeddings times its decoder states. Use another."
        )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
