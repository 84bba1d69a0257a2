"""The surrogate: training pairs, backbone, recipe and token vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from condsim.data.load import load_task
from condsim.errors import InputError
from condsim.training.recipe import Recipe
from condsim.training.run import fit
from condsim_contexts.harvest import Harvest
from condsim_contexts.recipe import ContextsRecipe, HarvestSettings, SurrogateSettings
from condsim_contexts.surrogate import (
    new_backbone,
    surrogate_recipe,
    token_vectors,
    write_training_pairs,
)
from condsim_contexts.tokens import CorpusTokens

pytest.importorskip("sklearn")

PROJECT = Path(__file__).resolve().parents[3]

FILES = {split: Path(f"{split}.parquet") for split in ("train", "dev", "test")}


def write(folder: Path, rows: list[tuple[int, int, float, str]], *, shards: int = 2) -> Harvest:
    """Shards of rows of ids, score and split."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    made = Harvest(
        folder, HarvestSettings(pairs=len(rows), shard_pairs=-(-len(rows) // shards)), {}
    )
    for number in range(made.settings.shards):
        size = made.settings.shard_pairs
        part = rows[number * size : (number + 1) * size]
        table = {
            "sentence1": [f"Sentence {one}." for one, *_ in part],
            "sentence2": [f"Sentence {two}." for _, two, *_ in part],
            "score": arrow.array([score for *_, score, _ in part], arrow.float32()),
            "id1": [one for one, *_ in part],
            "id2": [two for _, two, *_ in part],
            "split": [split for *_, split in part],
        }
        parquet.write_table(arrow.table(table), made.shard(number))
    return made


def harvest_of(folder: Path, *, train: int = 101, dev: int = 4, spread: float = 0.2) -> Harvest:
    rows = [(n, n + 1, 0.5 + spread * n / 100, "train") for n in range(train)]
    rows += [(1000 + n, 1001 + n, 0.5 + 0.3 * n, "dev") for n in range(dev)]
    return write(folder, [*rows, (2000, 2001, 0.6, "test")])


@pytest.fixture(scope="module")
def tokens(small_corpus, vocabulary) -> CorpusTokens:
    return CorpusTokens.build(small_corpus, vocabulary)


def recipe_of(files: dict[str, Path], backbone: Path, **surrogate: Any) -> Recipe:
    settings = SurrogateSettings(**surrogate)
    recipe = ContextsRecipe(name="s", inputs=["a.txt"], surrogate=settings)
    return surrogate_recipe(recipe, files=files, backbone=backbone)


@pytest.fixture(scope="module")
def backbone(vocabulary_folder, tokens, tmp_path_factory) -> Path:
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("models") / "backbone"
    settings = SurrogateSettings(width=32, layers=1)
    return new_backbone(vocabulary_folder, lambda: tokens, folder, settings)


def test_training_pairs_are_stretched_from_the_train_quantiles(tmp_path):
    files = write_training_pairs(harvest_of(tmp_path), tmp_path / "pairs")
    train = load_task(files["train"])
    # Scores 0.500 to 0.700 in 101 steps: the quantiles are 0.502 and 0.698.
    wanted = np.clip((0.5 + 0.002 * np.arange(101) - 0.502) / 0.196, 0, 1)
    np.testing.assert_allclose(train.gold, wanted, atol=1e-5)
    assert train.sentences1[7] == "Sentence 7."
    assert train.sentences2[7] == "Sentence 8."
    assert train.conditions is None
    assert (train.gold.min(), train.gold.max()) == (0, 1)
    np.testing.assert_allclose(load_task(files["dev"]).gold, [0, 1, 1, 1])


def test_training_pairs_dev_pair_of_two_shards_is_there_once(tmp_path):
    rows = [(n, n + 1, n / 100, "train") for n in range(50)]
    dev = [(100, 101, 0.1, "dev"), (101, 100, 0.1, "dev"), (102, 100, 0.2, "dev")]
    rows = [*dev, *rows, (200, 201, 0.3, "test"), *dev, (103, 104, 0.3, "dev")]
    files = write_training_pairs(write(tmp_path, rows), tmp_path / "pairs")
    assert load_task(files["dev"]).sentences1 == ("Sentence 100.", "Sentence 102.", "Sentence 103.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dev": 2}, r"has 2 different dev pairs, too few to train a surrogate. Harvest more"),
        ({"spread": 0.0}, r"All scores of the harvest in .* are 0\.5"),
    ],
)
def test_training_pairs_that_teach_nothing_raise(tmp_path, options: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        write_training_pairs(harvest_of(tmp_path, **options), tmp_path / "pairs")


def test_new_backbone_loads_in_transformers_and_sentence_transformers(backbone, small_corpus):
    transformers = pytest.importorskip("transformers")
    library = pytest.importorskip("sentence_transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(backbone)
    model = transformers.AutoModel.from_pretrained(backbone)
    assert model.config.hidden_size == 32
    assert model.config.vocab_size == len(tokenizer)
    sentences = small_corpus.sentences(np.arange(3))
    text = tokenizer.decode(tokenizer(sentences[0])["input_ids"])
    assert text.startswith("<s>")
    assert text.endswith("</s>")
    assert "<sep>" in tokenizer.decode(tokenizer("one", "two")["input_ids"])
    assert library.SentenceTransformer(str(backbone), device="cpu").encode(sentences).shape == (
        3,
        32,
    )


def test_new_backbone_starts_with_vectors_of_the_corpus_or_with_random_ones(
    backbone, vocabulary_folder, tokens, tmp_path
):
    load_file = pytest.importorskip("safetensors.numpy").load_file
    settings = SurrogateSettings(width=32, layers=1, embeddings="random")
    random = new_backbone(vocabulary_folder, lambda: tokens, tmp_path / "random", settings)
    made, other = (load_file(folder / "model.safetensors") for folder in (backbone, random))
    name = "embeddings.word_embeddings.weight"
    vectors = token_vectors(tokens, entries=len(made[name]), size=32)
    known = vectors.any(axis=1)
    assert 100 < known.sum() < len(known)
    assert not known[:4].any()  # nor <pad>, <s> and </s>
    # 5 times as long as vectors of places, which have a standard deviation of 0.02 in 32 columns
    np.testing.assert_allclose(made[name][known], 0.1 * 32**0.5 * vectors[known], rtol=1e-5)
    np.testing.assert_array_equal(made.pop(name)[~known], other.pop(name)[~known])
    assert all((made[key] == other[key]).all() for key in other)


def test_new_backbone_is_made_once_and_alike(backbone, vocabulary_folder, tokens, tmp_path):
    settings = SurrogateSettings(width=32, layers=1)
    kept = (backbone / "model.safetensors").stat().st_mtime_ns
    new_backbone(vocabulary_folder, lambda: tokens, backbone, settings)
    assert (backbone / "model.safetensors").stat().st_mtime_ns == kept
    (tmp_path / "b.partial").mkdir()  # what a killed process left
    again = new_backbone(vocabulary_folder, lambda: tokens, tmp_path / "b", settings)
    files = [folder / "model.safetensors" for folder in (again, backbone)]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert not (tmp_path / "b.partial").exists()


def test_surrogate_recipe_is_the_papers():
    recipe = recipe_of(FILES, Path("b"))
    assert recipe.encoder == "bi-encoder"
    assert recipe.backbone == "b"
    assert recipe.pooling == "mean"
    assert recipe.objective == {"mse": 1.0}
    assert recipe.learning_rate == 1e-4
    assert (recipe.train, recipe.dev) == ("train.parquet", "dev.parquet")


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ({"epoch": 3}, "'surrogate.train'.*'epoch'. Did you mean"),
        ({"epochs": 0}, "epochs.*1"),
        ({"dev": "x"}, "'surrogate.train' must not have the key 'dev'"),
        ({"objective": {"quad": 1}}, "The objective 'quad' of 'surrogate.train' compares two"),
    ],
)
def test_surrogate_recipe_wrong_key_raises(train: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        recipe_of(FILES, Path("b"), train=train)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")
def test_surrogate_cross_encoder_trains_and_scores(backbone, tmp_path):
    from condsim.loading import load_scorer

    files = write_training_pairs(harvest_of(tmp_path), tmp_path / "pairs")
    recipe = recipe_of(files, backbone, encoder="cross-encoder", train={"max_seq_length": 16})
    result = fit(recipe, tmp_path / "surrogate")
    assert result.report.valid_rows == 4
    scorer = load_scorer(tmp_path / "surrogate", device="cpu")
    assert 0 <= scorer.score("The baker sells bread.", "The smith sells iron.") <= 1


def tokens_of(sentences: list[list[int]]) -> CorpusTokens:
    starts = np.cumsum([0, *map(len, sentences)])
    return CorpusTokens(np.concatenate(sentences).astype(np.uint16), starts)


def naive(sentences: list[list[int]], entries: int, size: int) -> np.ndarray:
    """The same by loops and a full SVD."""
    counts = np.zeros((entries, entries))
    for sentence in sentences:
        for place, token in enumerate(sentence):
            for other, beside in enumerate(sentence):
                if 0 < abs(place - other) <= 8:
                    counts[token, beside] += 1 / abs(place - other)
    total = counts.sum(axis=1)
    shares = total**0.75 / (total**0.75).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.log(counts / (total[:, None] * shares))
    information[~(information > 0)] = 0
    left, values, _ = np.linalg.svd(information)
    vectors = (left * np.sqrt(values))[:, :size]
    lengths = np.linalg.norm(vectors, axis=1)
    return vectors / lengths[lengths > 1e-6].mean()


@pytest.mark.parametrize("block", [50_000, 2])
def test_token_vectors_equal_those_of_a_naive_loop(block: int, monkeypatch):
    monkeypatch.setattr("condsim_contexts.surrogate._SENTENCES_PER_BLOCK", block)
    random = np.random.default_rng(0)
    sentences = [random.integers(0, 30, size=random.integers(1, 15)).tolist() for _ in range(60)]
    vectors = token_vectors(tokens_of(sentences), entries=30, size=30)
    # Signs of columns are free, products of rows are not.
    wanted = naive(sentences, 30, 30)
    np.testing.assert_allclose(vectors @ vectors.T, wanted @ wanted.T, atol=1e-4)
