"""The encoder-decoders behind the generators: from scratch, pre-trained or saved."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import nn

from condsim.contexts.corpus import Vocabulary
from condsim.contexts.generator.items import ItemBuilder
from condsim.contexts.generator.model import ContextGenerator
from condsim.contexts.settings import SHAPES, GeneratorSettings
from condsim.errors import InputError, ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


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
    fast.encode_special_tokens = True
    start = config.decoder_start_token_id
    pad, end, separator = tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.sep_token_id
    vocabulary = Vocabulary(
        tokenizer=fast,
        revision=hashlib.sha256(fast.to_str().encode()).hexdigest()[:12],
        corpus_revision="",
        pad_id=end if pad is None else pad,
        start_id=end if start is None else start,
        end_id=end,
        separator_id=end if separator is None else separator,
        folder=folder,
    )
    vocabulary.save(folder)
    return vocabulary


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
