"""Tiny random backbones that stand in for downloads: seconds become milliseconds, no network."""

from __future__ import annotations

import json
import logging
import os
import string
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pytest

from condsim.model.embedding import EmbeddingScorer
from condsim.types import FloatArray

if TYPE_CHECKING:
    from condsim_llm.backend import Answer

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # read once, by its import

WORDS = (
    "a an the man woman girl boy dog cat bird child people throws kicks holds sits runs plays eats "
    "ball bike table street park water red blue green big small number color sport animal place of "
    "on in with and is are two three"
).split()


@pytest.fixture(autouse=True)
def log_level():
    """Takes back what a command run inside the test process did to the log level."""
    logger = logging.getLogger("condsim")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.fixture(scope="session")
def two_processes():
    """Runs a program of Python as a group of two processes, and shows what a failed one printed."""

    def run(*words: object) -> None:
        # The loopback interface: a name of this machine need not lead to it.
        launch = ["torch.distributed.run", "--standalone", "--local-addr=127.0.0.1"]
        ended = subprocess.run(
            [sys.executable, "-m", *launch, "--nproc-per-node=2", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        )
        assert ended.returncode == 0, ended.stdout

    return run


@pytest.fixture(scope="session")
def save_random():
    """Saves a model of random weights and its tokenizer as a checkpoint."""
    torch = pytest.importorskip("torch")

    def save(folder, model_class, config, tokenizer, *, seed=0):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model_class(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return save


@pytest.fixture(scope="session")
def tiny_backbone(tmp_path_factory, save_random):
    """A random BERT checkpoint: 2 layers, hidden 32, lower-case WordPiece."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("tiny-bert")
    letters = [*string.ascii_lowercase, *string.digits, *".,?!'-"]
    words = [word for word in WORDS if len(word) > 1]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *words]
    vocabulary += [f"##{letter}" for letter in letters]
    tokenizer = transformers.BertTokenizer(
        vocab={token: number for number, token in enumerate(vocabulary)}, model_max_length=64
    )
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    return save_random(folder, transformers.BertModel, config, tokenizer)


@pytest.fixture(scope="session")
def tiny_roberta_backbone(tmp_path_factory, save_random):
    """A random RoBERTa checkpoint: 2 layers, hidden 32, byte-level BPE trained on a few words."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("tiny-roberta")
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bpe = tokenizers.ByteLevelBPETokenizer()
    bpe.train_from_iterator(
        [" ".join(WORDS)], vocab_size=400, special_tokens=special, show_progress=False
    )
    trained = json.loads(bpe.to_str())["model"]
    tokenizer = transformers.RobertaTokenizer(
        vocab=trained["vocab"],
        merges=[tuple(merge) for merge in trained["merges"]],
        model_max_length=64,
    )
    config = transformers.RobertaConfig(
        vocab_size=bpe.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=66,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    return save_random(folder, transformers.RobertaModel, config, tokenizer)


class FakeBackend:
    """Answers prompts with texts it was given, and remembers what it was asked."""

    name = "fake"
    max_new_tokens = 20
    longest_prompt: int | None = None
    answer_gap = " "
    notes: tuple[str, ...] = ()

    def __init__(self, reply: Callable[[str], Answer], *, fail_after: int | None = None) -> None:
        self.reply = reply
        self.fail_after = fail_after
        self.asked: list[str] = []
        self.checked = 0
        self.identity = {"backend": "fake", "model": "fake"}

    def check(self) -> None:
        self.checked += 1

    def count_tokens(self, prompt: str) -> int:
        return 10

    def answers(
        self, prompts: Iterable[str], *, probabilities: bool = False
    ) -> Generator[tuple[int, Answer], None, None]:
        """Answers in twos, the second prompt first: places do not follow the order."""
        from condsim_llm.errors import BackendError

        numbered = enumerate(prompts)
        while some := list(islice(numbered, 2)):
            for place, prompt in reversed(some):
                if self.fail_after is not None and len(self.asked) >= self.fail_after:
                    raise BackendError("The server is gone.")
                self.asked.append(prompt)
                answer = self.reply(prompt)
                yield place, answer if probabilities else replace(answer, probabilities=None)


@pytest.fixture
def fake_backend():
    """A back end of the tests' own."""
    return FakeBackend


class LetterScorer(EmbeddingScorer):
    """Embeds a text as the counts of its letters, and counts what it embeds."""

    def __init__(self, *, name: str = "letters", revision: str | None = None) -> None:
        super().__init__(name=name, order="condition-first", dimension=26, calibration=None)
        self.revision = revision
        self.embedded: list[str] = []

    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        joined = [text if isinstance(text, str) else " | ".join(text) for text in texts]
        self.embedded += joined
        counts = np.array(
            [[1 + text.lower().count(chr(97 + k)) for k in range(26)] for text in joined]
        )
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def letters():
    return LetterScorer
