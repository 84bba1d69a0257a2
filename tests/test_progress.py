from __future__ import annotations

import io

from rich.console import Console

from condsim.console import ProgressDisplay


def test_progress_in_a_log_is_a_line_now_and_then(monkeypatch, capsys):
    now = [1000.0]
    monkeypatch.setattr("condsim.console.time.monotonic", lambda: now[0])
    with ProgressDisplay() as progress:
        for done in (100, 110, 150, 200):  # 100 were done before
            progress("harvest", done, 400)
            now[0] += 20
        progress("corpus", 0, 0)
        now[0] += 31
        progress("corpus", 0, 0)
    assert capsys.readouterr().err.splitlines() == [
        "harvest: 150 of 400, 1.2/s, 3 min left",
        "corpus",
    ]


def test_progress_on_a_terminal_draws_stage_rate_and_time():
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=100)
    with ProgressDisplay(console) as progress:
        progress("generators", 3, 20)
        progress("generators", 4, 20)
        progress("under [/b] and [red]", 1, 2)
        progress._bars.refresh()
        progress.say("a line [with brackets]")
    shown = text.getvalue()
    assert "under [/b] and [red]" in shown
    assert "4/20" in shown
    assert "a line [with brackets]" in shown
    assert "/s" in shown
