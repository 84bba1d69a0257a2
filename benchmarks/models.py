"""The float32 models that the peers run."""

from __future__ import annotations

import string
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from condsim.errors import ModelError
from condsim.model.builders import resolve_backbone
from condsim.model.settings import DEFAULT_FOLDER, revision_of
from condsim.types import Task

__all__ = ["MINILM", "peer_model", "random_backbone", "train_backbone"]

MINILM = "sentence-transformers/all-MiniLM-L6-v2"

# The size is MiniLM's: the embeddings' gradient and update cost time too.
_VOCABULARY = 30522


def peer_model(folder: Path | None) -> Path:
    """Find the model that the peer scores with.

    Args:
        folder: The default model in float32; None to rebuild it from the int8 weights that ship,
            once for each version of them.

    Returns:
        Its folder.

    Raises:
        ModelError: If there is no model in the folder that is given.
    """
    if folder is not None:
        if not (folder / "modules.json").is_file():
            raise ModelError(f"--peer-model must be a folder that has modules.json, got {folder}.")
        return folder.resolve()
    built = Path("runs", f"condsim-minilm-{revision_of('default')}")
    if not built.is_dir():
        from condsim.training.export import restore_onnx

        built.parent.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=built.parent) as partial:
            restore_onnx(DEFAULT_FOLDER, Path(partial, "model"))
            Path(partial, "model").rename(built)
    return built.resolve()


def train_backbone(name: str | None, task: Task, folder: Path) -> tuple[str, str]:
    """Find the backbone to train.

    Args:
        name: A folder; None for all-MiniLM-L6-v2.
        task: The training rows, whose words a random backbone is to know.
        folder: An existing folder to make a random backbone in, where MiniLM is not installed.

    Returns:
        Its folder, and what it is, for the reader of the results.
    """
    if name is not None:
        return name, Path(name).name
    installed = resolve_backbone(MINILM)
    if Path(installed).is_dir():
        return installed, "all-MiniLM-L6-v2"
    return str(random_backbone(task, folder)), "a random BERT of MiniLM's size"


def random_backbone(task: Task, folder: Path) -> Path:
    """Make a BERT of the size of MiniLM (6 layers, 384 wide) with random weights.

    Args:
        task: The rows whose words become tokens, so that texts are as long as with MiniLM.
        folder: The folder to write; it must exist.

    Returns:
        The folder.
    """
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    letters = [*string.ascii_lowercase, *string.digits, *string.punctuation]
    texts = [*task.sentences1, *task.sentences2, *(task.conditions or ())]
    counts = Counter(word.strip(string.punctuation) for text in texts for word in text.split())
    words = [word.lower() for word, _ in counts.most_common(20_000)]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]
    tokens += [f"##{letter}" for letter in letters] + words
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    BertTokenizer(vocab=vocabulary, model_max_length=128).save_pretrained(folder)
    config = BertConfig(
        vocab_size=_VOCABULARY,
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    return folder
