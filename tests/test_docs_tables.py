"""Holds the tables and links of the README and the docs against the code."""

from __future__ import annotations

import csv
import re
import runpy
from pathlib import Path

import pytest
import yaml

from condsim.evaluation.metrics import METRICS
from condsim.evaluation.report import Report
from condsim.training.objectives import OBJECTIVES
from condsim.training.recipe import load_recipe

PROJECT = Path(__file__).resolve().parents[1]
PAGES = [
    *(PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(PROJECT.glob("docs/**/*.md")),
    *sorted(PROJECT.glob("papers/docs/**/*.md")),
    PROJECT / "benchmarks" / "README.md",
]
CSTS = PROJECT.parent / "shared" / "data" / "csts-reannotated"


def table(page: str, head: str) -> list[list[str]]:
    """Cells of the rows of the table whose first column has this head."""
    lines = (PROJECT / page).read_text("utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {head} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        rows.append([cell.strip().strip("`") for cell in cells])
    return rows


def test_objectives_table_is_the_losses():
    assert [cells[0] for cells in table("docs/training.md", "objective")] == list(OBJECTIVES)


def test_paper_table_is_the_recipes():
    rows = table("papers/docs/reproduce.md", "recipe")
    files = sorted((PROJECT / "recipes" / "csts").glob("*.yaml"))
    assert sorted(cells[0] for cells in rows) == [file.stem for file in files]
    for stem, rate, decay, transform, objective, fusion, spearman, _test in rows:
        path = PROJECT / "recipes" / "csts" / f"{stem}.yaml"
        recipe = load_recipe(path)
        assert recipe.learning_rate == float(rate), stem
        assert recipe.weight_decay == float(decay), stem
        assert recipe.transform is (transform == "yes"), stem
        assert "+".join(sorted(recipe.objective)) == objective, stem
        assert (recipe.fusion if recipe.encoder == "tri-encoder" else "-") == fusion, stem
        assert f"{spearman} Spearman" in path.read_text("utf-8"), stem


def test_evaluation_tables_are_the_report():
    assert [cells[0] for cells in table("docs/evaluation.md", "figure")] == list(METRICS)
    fields = list(Report.model_fields)
    assert [cells[0] for cells in table("docs/evaluation.md", "field")] == fields


@pytest.mark.parametrize("page", ["api.md", "commands.md", "recipe.md"])
def test_reference_page_is_what_the_code_says(page):
    reference = runpy.run_path(str(PROJECT / "docs" / "reference.py"))
    text = (PROJECT / "docs" / page).read_text("utf-8")
    assert text == reference["PAGES"][page](), "make reference"


def test_every_page_is_in_the_navigation():
    sections = yaml.safe_load((PROJECT / "mkdocs.yml").read_text("utf-8"))["nav"]
    entries = [page for section in sections for pages in section.values() for page in pages]
    listed = [page if isinstance(page, str) else next(iter(page.values())) for page in entries]
    assert sorted(listed) == sorted(path.name for path in PROJECT.glob("docs/*.md"))


def anchors(page: Path) -> set[str]:
    """Names of the headings of a page, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", [str(page.relative_to(PROJECT)) for page in PAGES])
def test_page_links_lead_somewhere(name):
    page = PROJECT / name
    text = re.sub(r"```.*?```|<!--.*?-->", "", page.read_text("utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("http://", "https://")):
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{name}: there is no {target}"
        assert not anchor or anchor in anchors(file), f"{name}: no heading {link}"


def test_no_row_of_csts_is_quoted():
    if not CSTS.is_dir():
        pytest.skip("the C-STS files are not here")
    pages = [*PAGES, *sorted((PROJECT / "examples").glob("*.*"))]
    quoted = "\n".join(page.read_text("utf-8") for page in pages).lower()
    for file in ("train.csv", "dev.csv"):
        with (CSTS / file).open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                for column in ("sentence1", "sentence2"):
                    assert row[column].strip().lower() not in quoted, row[column]
