"""A learned criterion in place of a condition, in each of the other libraries."""

import csv
from pathlib import Path

import pytest

import condsim

HELPDESK = Path(__file__).parents[3] / "examples" / "helpdesk.csv"
FIRST = ["I cannot log in.", "I cannot log in."]
SECOND = ["My password is refused.", "Please add a dark mode."]


@pytest.fixture(scope="module")
def model():
    return condsim.load()


@pytest.fixture(scope="module")
def criterion(model):
    with HELPDESK.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    values = [row["problem"] for row in rows]
    return model.learn([row["text"] for row in rows], values, condition="the problem")


@pytest.fixture(scope="module")
def expected(model, criterion):
    return pytest.approx(model.score(FIRST, SECOND, criterion).tolist(), abs=1e-4)


def test_pandas_takes_a_criterion(model, criterion, expected, tmp_path):
    pandas = pytest.importorskip("pandas")
    from condsim_integrations.pandas import register_pandas

    register_pandas(model)
    frame = pandas.DataFrame({"a": FIRST, "b": SECOND})
    assert frame.condsim.score("a", "b", condition=criterion).tolist() == expected
    path = tmp_path / "problem.criterion"
    criterion.save(path)
    assert frame.condsim.score("a", "b", condition=str(path)).tolist() == expected


def test_polars_takes_a_criterion(model, criterion, expected):
    polars = pytest.importorskip("polars")
    from condsim_integrations.polars import register_polars

    register_polars(model)
    frame = polars.DataFrame({"a": FIRST, "b": SECOND})
    scored = frame.select(polars.col("a").condsim.score("b", condition=criterion))
    assert scored["a"].to_list() == expected


def test_langchain_takes_a_criterion(model, criterion):
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document

    from condsim_integrations.langchain import LangChainEmbeddings, LangChainReranker

    embeddings = LangChainEmbeddings(criterion, model=model)
    assert len(embeddings.embed_documents(["a text", " "])[1]) == criterion.dimension
    ranker = LangChainReranker(criterion, model=model)
    documents = [Document(text) for text in SECOND[::-1]]
    best = ranker.compress_documents(documents, FIRST[0])
    assert best[0].page_content == SECOND[0]


def test_llama_index_takes_a_criterion(model, criterion):
    pytest.importorskip("llama_index.core")
    from condsim_integrations.llama_index import LlamaIndexEmbedding

    embedding = LlamaIndexEmbedding(criterion, model=model)
    assert len(embedding.get_text_embedding("a text")) == criterion.dimension


def test_haystack_takes_a_criterion(model, criterion):
    pytest.importorskip("haystack")
    from condsim_integrations.haystack import HaystackTextEmbedder

    answer = HaystackTextEmbedder(criterion, model=model).run("a text")
    assert len(answer["embedding"]) == criterion.dimension


def test_duckdb_takes_the_file_of_a_criterion(model, criterion, expected, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    from condsim_integrations.duckdb import register_duckdb

    path = tmp_path / "problem.criterion"
    criterion.save(path)
    connection = duckdb.connect()
    register_duckdb(connection, model=model)
    scored = [
        connection.execute("select condsim_score(?, ?, ?)", [first, second, str(path)]).fetchone()
        for first, second in zip(FIRST, SECOND, strict=True)
    ]
    assert [score for (score,) in scored] == expected
