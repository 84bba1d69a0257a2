"""A small corpus of our own words: 20 documents of 15 sentences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

pytest.importorskip("pyarrow")

from condsim_contexts.corpus import Corpus, prepare_corpus
from condsim_contexts.recipe import CorpusSettings
from condsim_contexts.tokens import Vocabulary, learn_vocabulary

# who, what they work with, where, what they make, the tool, the weather
TOPICS = {
    "The baker": ("baker", "flour", "bakery", "bread", "oven", "cold"),
    "The gardener": ("gardener", "seeds", "garden", "roses", "spade", "dry"),
    "The fisher": ("fisher", "nets", "harbor", "herring", "boat", "windy"),
    "The smith": ("smith", "iron", "forge", "horseshoes", "hammer", "hot"),
    "The teacher": ("teacher", "chalk", "school", "lessons", "blackboard", "rainy"),
    "The weaver": ("weaver", "wool", "workshop", "blankets", "loom", "foggy"),
    "The pilot": ("pilot", "maps", "airfield", "flights", "compass", "cloudy"),
    "The nurse": ("nurse", "bandages", "hospital", "dressings", "scissors", "quiet"),
    "The farmer": ("farmer", "wheat", "field", "harvest", "tractor", "sunny"),
    "The painter": ("painter", "colors", "studio", "portraits", "brush", "bright"),
    "The carpenter": ("carpenter", "oak", "yard", "tables", "saw", "mild"),
    "The cook": ("cook", "onions", "kitchen", "soup", "knife", "steamy"),
    "The tailor": ("tailor", "cloth", "shop", "jackets", "needle", "gray"),
    "The miner": ("miner", "coal", "pit", "tunnels", "lamp", "dark"),
    "The sailor": ("sailor", "ropes", "ship", "knots", "anchor", "stormy"),
    "The printer": ("printer", "ink", "press room", "newspapers", "rollers", "damp"),
    "The beekeeper": ("beekeeper", "hives", "orchard", "honey", "smoker", "warm"),
    "The potter": ("potter", "clay", "pottery", "bowls", "wheel", "misty"),
    "The driver": ("driver", "fuel", "depot", "deliveries", "lorry", "icy"),
    "The watchmaker": ("watchmaker", "springs", "arcade", "clocks", "tweezers", "snowy"),
}

SENTENCES = (
    "Every morning the {who} walks to the {where} before the town is awake.",
    "On a {weather} day the way there takes a little longer.",
    "The {tool} has stood in the same corner for many years.",
    "First the {stuff} must be brought in and looked over.",
    "Bad {stuff} would spoil the {thing} that people pay for.",
    "A young helper learns how to hold the {tool} without fear.",
    "By noon the first {thing} are ready, and neighbors come to look.",
    "They ask the {who} about the price, which has hardly changed.",
    "Nobody else in the valley makes {thing} of this kind.",
    "The {where} is small, so visitors wait outside its door.",
    "When the {tool} breaks, the whole afternoon is lost.",
    "The {who} once tried a new {tool} but soon gave it away.",
    "Good {stuff} and patience are all it takes, says the {who}.",
    "In the evening the floor of the {where} is swept clean.",
    "After such a {weather} day, selling the last {thing} feels like a feast.",
)


def days() -> str:
    """The corpus as one text file, 300 sentences of which no two are alike."""
    names = ("who", "stuff", "where", "thing", "tool", "weather")
    documents = []
    for title, topic in TOPICS.items():
        words = dict(zip(names, topic, strict=True))
        lines = [sentence.format(**words) for sentence in SENTENCES]
        paragraphs = [" ".join(lines[begin : begin + 5]) for begin in range(0, 15, 5)]
        documents.append("\n".join([f"= {title} =", "== A day ==", *paragraphs]))
    return "\n\n".join(documents) + "\n"


@pytest.fixture(scope="session")
def small_text() -> str:
    """20 documents of 15 sentences."""
    return days()


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """20 documents of 15 sentences, in chunks of 5: 60 chunks."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("sentencex")
    folder = tmp_path_factory.mktemp("small-corpus")
    (folder / "days.txt").write_text(days(), encoding="utf-8")
    return prepare_corpus(
        [folder / "days.txt"], folder / "corpus", settings=CorpusSettings(chunk_sentences=5)
    )


@pytest.fixture(scope="session")
def vocabulary_folder(small_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small-vocabulary") / "v"
    learn_vocabulary(small_corpus, folder, size=400)
    return folder


@pytest.fixture(scope="session")
def vocabulary(vocabulary_folder: Path) -> Vocabulary:
    """400 tokens of the small corpus."""
    return Vocabulary.open(vocabulary_folder)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Sums are then added in one order, so that two trainings can be equal to the last bit."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    # Contexts of equal weight are chosen by sums of BLAS, whose last bits depend on its threads.
    with threadpool_limits(1):
        yield
    torch.set_num_threads(threads)


class NumberedCorpus(Corpus):
    """A corpus of numbered rows without files, in documents and chunks of equal size."""

    def __init__(self, rows: int, *, chunk: int, document: int, text: str = "word{}") -> None:
        self.revision = "r0"
        self.documents = (np.arange(rows) // document).astype(np.int32)
        self.chunk_starts = np.append(np.arange(0, rows, chunk), rows)
        self.text = text

    def sentences(self, ids: object) -> list[str]:
        return [self.text.format(row) for row in np.asarray(ids)]


@pytest.fixture(scope="session")
def numbered_corpus() -> type[NumberedCorpus]:
    return NumberedCorpus
