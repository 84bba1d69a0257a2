from __future__ import annotations

import dataclasses

import pytest
from papers.columns import resolve_models
from papers.prompts import plan_prompts

from condsim_llm import scorer as open_prompt
from condsim_llm.backend import Answer
from papers import PromptOptions, load_experiment, reproduce

ROWS = 20  # labeled rows of the C-STS dev file


def reply(prompt):
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


def sections(page):
    """Cells of the rows of each table, by its heading."""
    found = {}
    for part in page.split("\n## ")[1:]:
        lines = [line for line in part.splitlines() if line.startswith("| ")]
        cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
        found[part.splitlines()[0]] = cells
    return found


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
    assert "measured on 8 labeled rows of dev.csv (revision " in page
    assert "), drawn with seed 0." in page
    assert "--model m --rows 8" in page
    ask("csts-table11", "m", rows=12)
    assert len(backends["m"].asked) == 9 * 12  # the 8 are among the 12
    drawn = prompt_runs(planned(options, "csts-table11", "m", rows=8))[0]
    assert drawn.report().report.valid_rows == 8
    assert drawn.folder != prompt_runs(planned(options, "csts-table11", "m"))[0].folder
