from __future__ import annotations

import csv
import dataclasses

import pytest
from papers.columns import resolve_models
from papers.prompts import plan_prompts

from condsim.errors import InputError
from condsim.prompting import scorer as open_prompt
from condsim.prompting.backend import Answer
from papers import PromptOptions, load_experiment, reproduce

TABLES = ("csts-table4", "csts-table11", "csts-table12")
ROWS = 20  # labelled rows of the C-STS dev file


def reply(prompt: str) -> Answer:
    """What the model says: no number once in four, else what the condition suggests."""
    length = len(prompt)
    text = "?" if length % 4 == 0 else f"{1 + length % 5}"
    return Answer(text, {1.0: 0.5, 4.0: 0.25}, prompt_tokens=100, new_tokens=1)


@pytest.fixture
def backends(fake_backend, monkeypatch):
    """A back end for each model that is opened, by its name."""
    made = {}

    def open_backend(settings):
        backend = made.setdefault(settings.model, fake_backend(reply))
        backend.identity = {"backend": settings.backend, "model": settings.model}
        return backend

    monkeypatch.setattr(open_prompt, "open_backend", open_backend)
    return made


@pytest.fixture
def ask(options, tmp_path):
    def go(name, *models, report_only=False, **prompts):
        chosen = PromptOptions(models=resolve_models(models), **prompts)
        return reproduce(
            load_experiment(name),
            dataclasses.replace(options, prompts=chosen),
            tmp_path / "out",
            report_only=report_only,
        )

    return go


def planned(options, name, *models, **prompts):
    chosen = PromptOptions(models=resolve_models(models), **prompts)
    return plan_prompts(load_experiment(name), dataclasses.replace(options, prompts=chosen))


def prompt_runs(lines):
    return tuple(line.run for line in lines if line.run is not None)


def sections(page: str) -> dict[str, list[list[str]]]:
    """Cells of the rows of each table, by its heading."""
    found = {}
    for part in page.split("\n## ")[1:]:
        lines = [line for line in part.splitlines() if line.startswith("| ")]
        cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
        found[part.splitlines()[0]] = cells
    return found


@pytest.mark.parametrize(
    ("name", "models", "metrics"),
    [("csts-table4", 7, 1), ("csts-table11", 10, 3), ("csts-table12", 10, 3)],
)
def test_published_every_cell_of_the_paper_is_there(name, models, metrics):
    experiment = load_experiment(name)
    assert len(experiment.rows) == 9
    assert sum(
        len(numbers)
        for by_metric in experiment.published.values()
        for numbers in by_metric.values()
    ) == models * 9 * metrics  # fmt: skip


@pytest.mark.parametrize(
    ("name", "row", "model", "expected"),
    [
        ("csts-table4", "short-4", "gpt-4-0314", {"spearman": "43.6"}),
        ("csts-table4", "none-0", "tk-instruct-3b", {"spearman": "-1.8"}),
        (
            "csts-table11",
            "short-4",
            "gpt-4-0314",
            {"invalid": "0.00", "pearson": "41.52", "spearman": "42.05"},
        ),
        (
            "csts-table11",
            "none-0",
            "flan-t5-small",
            {"invalid": "91.74", "pearson": "3.23", "spearman": "2.20"},
        ),
        (
            "csts-table12",
            "none-2",
            "flan-t5-base",
            {"invalid": "3.67", "pearson": "0.25", "spearman": "41.81"},
        ),
        (
            "csts-table12",
            "long-4",
            "gpt-4-0314",
            {"invalid": "0.00", "pearson": "90.73", "spearman": "90.65"},
        ),
    ],
)
def test_published_numbers_are_as_printed(name, row, model, expected):
    experiment = load_experiment(name)
    assert {key: experiment.paper(row, key, model).text for key in expected} == expected


def test_plan_prompts_without_a_model_shows_the_paper_and_needs_no_data(options):
    (options.data / "csts-reannotated" / "dev.csv").unlink()
    lines = planned(options, "csts-table4")
    assert prompt_runs(lines) == ()
    assert len(lines) == 7 * 9


def test_plan_prompts_tables_4_and_11_share_their_runs(options):
    runs = [prompt_runs(planned(options, name, "flan-t5-small", "m")) for name in TABLES]
    assert runs[0] == runs[1]
    assert len({run.folder for run in (*runs[0], *runs[2])}) == 2 * 2 * 9


def test_plan_prompts_folder_depends_on_what_decides_the_scores(options):
    def folder(**prompts):
        return prompt_runs(planned(options, "csts-table11", "flan-t5-xl", **prompts))[5].folder

    assert folder().name.startswith("flan-t5-xl-short-4-shot-s0-")
    assert folder(max_requests=3, max_tokens=5) == folder()
    server = folder(base_url="http://localhost:1/v1")
    assert server != folder(base_url="http://localhost:2/v1")  # it may serve another model
    expected = folder(scoring=("expected",))
    assert len({folder(), server, expected}) == 3
    assert "-4-shot-expected-s0-" in expected.name
    before = folder()
    with (options.data / "csts-reannotated" / "dev.csv").open("a", encoding="utf-8") as stream:
        stream.write("a,b,c,1\n")
    assert folder() != before


def test_plan_prompts_where_a_model_runs(options):
    def kinds(**prompts):
        runs = prompt_runs(planned(options, "csts-table11", "flan-ul2", "gpt-4-0314", **prompts))
        return [run.settings.backend for run in runs[:2]]

    assert kinds() == ["local", "server"]
    assert kinds(base_url="http://localhost:1/v1") == ["server", "server"]


def test_reproduce_page_has_the_papers_number_beside_ours(ask, backends, options):
    written = ask("csts-table11", "google/flan-t5-small", "someone/tiny")
    assert (written.finished, written.planned) == (18, 18)
    assert written.plot.read_bytes().startswith(b"\x89PNG")
    page = written.page.read_text()
    tables = sections(page)
    assert list(tables) == [
        *("Spearman", "Pearson", "Invalid answers, %", "Spearman of the valid answers alone")
    ]
    head, rows = tables["Spearman"][0], tables["Spearman"][2:]
    assert head[:4] == ["instruction", "shots", "Flan-T5 small, paper", "Flan-T5 small, ours"]
    assert head[-2:] == ["GPT-4, paper", "someone/tiny, ours"]
    assert rows[5][:3] == ["short", "4-shot", "-4.29"]
    assert rows[5][-2] == "42.05"
    assert rows[5][3] == rows[5][-1]  # both are the same fake
    assert rows[-1][0] == "condition-only baseline, C-STS"
    run = prompt_runs(planned(options, "csts-table11", "flan-t5-small"))[5]
    report = run.report()
    spearman = report.report.model.metrics["spearman"]
    assert rows[5][3] == f"{spearman.value:.1f} [{spearman.low:.1f}, {spearman.high:.1f}]"
    invalid = tables["Invalid answers, %"]
    assert invalid[2 + 5][2:4] == ["0.00", f"{report.invalid:.2f}"]
    assert invalid[-1][0] == "long"  # the baseline gives no invalid answers
    alone = tables["Spearman of the valid answers alone"]
    assert alone[0][2:] == ["Flan-T5 small, ours", "someone/tiny, ours"]
    assert alone[2 + 5][2].startswith(f"{report.valid_only.model.metrics['spearman'].value:.1f} [")
    assert "C-STS: examples drawn from train.csv (revision " in page
    assert "`google/flan-t5-small`, on this machine; 9 of 9 rows finished; seed 0" in page
    made = "python -m papers csts-table11 --model google/flan-t5-small --model someone/tiny"
    assert f"Made by `{made}`." in page
    assert str(options.data) not in page


def test_reproduce_csv_has_paper_and_ours(ask, backends):
    written = ask("csts-table4", "google/flan-t5-xl")
    with written.table.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    ours = [row for row in rows if row["ours"] and row["instruction"] == "long"]
    assert [(row["backbone"], row["metric"], row["paper"]) for row in ours[:3]] == [
        ("Flan-T5 XL", "spearman", "26.6"),
        ("Flan-T5 XL", "invalid", ""),
        ("Flan-T5 XL", "valid_spearman", ""),
    ]
    assert ours[0]["low"]
    assert [row["instruction"] for row in rows if not row["shots"]] == [
        "condition-only baseline",
    ]
    assert len([row for row in rows if row["paper"]]) == 63


def test_reproduce_stsb_has_no_baseline(ask, backends):
    page = ask("csts-table12", "google/flan-t5-small").page.read_text()
    assert "STS-B has no conditions" in page
    assert "condition-only baseline, " not in page
    assert "not run" not in page
    assert all("Condition:" not in prompt for prompt in backends["google/flan-t5-small"].asked)


def test_reproduce_finished_runs_are_not_asked_again(ask, backends):
    ask("csts-table11", "m")
    asked = len(backends["m"].asked)
    assert asked == 9 * ROWS
    backends.clear()
    again = ask("csts-table4", "m")
    assert not backends  # not even opened
    assert again.finished == 9


def test_reproduce_mistake_is_told_before_a_page_is_written(ask, backends, options, tmp_path):
    lines = (options.data / "csts-reannotated" / "train.csv").read_text().splitlines(keepends=True)
    (options.data / "csts-reannotated" / "train.csv").write_text("".join(lines[:5]))
    with pytest.raises(InputError, match="4 examples need 3 sentence pairs"):
        ask("csts-table11", "m")
    assert not backends
    assert not (tmp_path / "out").exists()


def test_reproduce_expected_value_is_another_run(ask, backends):
    ask("csts-table11", "m", scoring=("expected",))
    page = ask("csts-table11", "m", scoring=("expected",)).page.read_text()
    assert "The score is the expected value" in page
    assert "--model m --scoring expected" in page
    assert "undefined" in page  # the fake gives all rows one expected value
    assert "one score for all rows" in page
    ask("csts-table11", "m")
    assert len(backends["m"].asked) == 9 * ROWS  # the answers are shared


def test_reproduce_both_scorings_ask_once_and_have_a_column_each(ask, backends):
    written = ask("csts-table11", "flan-t5-small", scoring=("text", "expected"))
    assert (written.finished, written.planned) == (18, 18)
    assert len(backends["google/flan-t5-small"].asked) == 9 * ROWS
    page = written.page.read_text()
    head = sections(page)["Spearman"][0]
    assert head[2:4] == ["Flan-T5 small, paper", "Flan-T5 small, ours"]
    assert head[-1] == "Flan-T5 small, expected value, ours"
    assert "18 of 18 rows finished" in page
    assert "--scoring text --scoring expected" in page


def test_reproduce_drawn_rows_all_lines_are_measured_on_them(ask, backends, options):
    page = ask("csts-table11", "m", rows=8).page.read_text()
    few = list(backends["m"].asked)
    assert len(few) == 9 * 8
    assert "measured on 8 labelled rows of dev.csv (revision " in page
    assert "), drawn with seed 0." in page
    assert "--model m --rows 8" in page
    ask("csts-table11", "m", rows=12)
    assert len(backends["m"].asked) == 9 * 12  # the 8 are among the 12
    drawn = prompt_runs(planned(options, "csts-table11", "m", rows=8))[0]
    assert drawn.report().report.valid_rows == 8
    assert drawn.folder != prompt_runs(planned(options, "csts-table11", "m"))[0].folder


def test_reproduce_server_leaves_its_address_out(ask, backends, options):
    written = ask("csts-table11", "m", base_url="http://secret.example/v1")
    page = written.page.read_text()
    assert "behind a server" in page
    assert "--base-url URL" in page
    reports = [path.read_text() for path in options.runs.glob("*-shot-*/report.json")]
    assert len(reports) == 9
    assert not any("secret" in text for text in (page, *reports))
