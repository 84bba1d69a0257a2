"""Stand-ins: tiny random language models, which answer nonsense but exactly, and a server."""

from __future__ import annotations

import string
from collections.abc import Callable
from pathlib import Path

import loopback as loopback_server
import pytest

SERVER_KEY = "sk-secret-0123456789"

TEXTS = [
    "Rate how similar the two sentences are under the condition, from 1 to 5. Output: 4.0",
    "Input: Sentence 1: A man throws a ball in the park. Sentence 2: Two dogs run on the beach.",
    "Condition: The number of animals. Output: 1.0 Output: 2 Output: 3 Output: 3.0 Output: 5.0",
    "The answer is 5 out of 5, not 0, 6, 7, 8, 9 or 10. Output: 2.0 Output: 4 Output: 1",
]

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.fixture(scope="session")
def tiny_gpt2(tmp_path_factory, save_random):
    """A random GPT-2: 2 layers, hidden 32, 256 positions, byte-level BPE, no padding token."""
    return _gpt2(tmp_path_factory.mktemp("tiny") / "tiny-gpt2", save_random, chat=False)


@pytest.fixture(scope="session")
def tiny_chat_gpt2(tmp_path_factory, save_random):
    """The same with a chat template and a tokenizer that puts a start token before each text."""
    return _gpt2(tmp_path_factory.mktemp("tiny") / "tiny-chat-gpt2", save_random, chat=True)


@pytest.fixture(scope="session")
def tiny_t5(tmp_path_factory, save_random):
    """A random T5: 2 layers on each side, hidden 32, Unigram pieces: words, letters and digits."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("tiny") / "tiny-t5"
    words = sorted({word for text in TEXTS for word in text.split()})
    signs = [*string.ascii_letters, *string.digits, *".,:"]
    pieces = dict.fromkeys([*(f"▁{word}" for word in words), "▁", *signs])
    scored = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *((piece, -3.0) for piece in pieces)]
    tokenizer = transformers.T5Tokenizer(vocab=scored, extra_ids=0, model_max_length=64)
    config = transformers.T5Config(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
        initializer_factor=3.0,  # or all scores are nearly the same
    )
    return save_random(folder, transformers.T5ForConditionalGeneration, config, tokenizer, seed=2)


def _gpt2(folder: Path, save_random: Callable[..., Path], *, chat: bool) -> Path:
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    end = "<|endoftext|>"
    special = [end, "<|user|>", "<|assistant|>"]
    bpe = tokenizers.ByteLevelBPETokenizer()
    bpe.train_from_iterator(TEXTS, vocab_size=320, special_tokens=special, show_progress=False)
    fast = tokenizers.Tokenizer.from_str(bpe.to_str())
    if chat:
        fast.post_processor = tokenizers.processors.TemplateProcessing(
            single=f"{end} $A", special_tokens=[(end, 0)]
        )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=fast,
        bos_token=end,
        eos_token=end,
        model_max_length=256,
        chat_template=CHAT_TEMPLATE if chat else None,
    )
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=256,
        n_embd=32,
        n_layer=2,
        n_head=2,
        initializer_range=0.3,  # or all scores are nearly the same
        bos_token_id=0,
        eos_token_id=0,
    )
    return save_random(folder, transformers.GPT2LMHeadModel, config, tokenizer, seed=5)


@pytest.fixture(scope="module")
def loopback():
    """The module of the loopback server."""
    return loopback_server


@pytest.fixture(scope="module")
def process(loopback):
    """A running server."""
    with loopback.running() as server:
        yield server


@pytest.fixture(scope="module")
def locked(loopback):
    """A server that asks for `SERVER_KEY`."""
    with loopback.running("--key", SERVER_KEY) as server:
        yield server


@pytest.fixture
def server(process, monkeypatch):
    """The running server, with nothing in its memory or in the environment."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    process.reset()
    return process
