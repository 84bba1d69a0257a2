"""``condsim label``: label the texts of a file, or pairs, and learn a criterion from them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from rich.text import Text
from typer import Argument, Option

from condsim.cli import options
from condsim.cli.files import Output
from condsim.cli.learn import show_criterion
from condsim.cli.options import TextFile
from condsim.cli.process import print_note
from condsim.data.text import FileFormat
from condsim.errors import InputError
from condsim.labeling import SILENT, SKIP, LabelSession, Session
from condsim.loading import load_encoder
from condsim.pair_labeling import PairSession
from condsim.terminal import Terminal

_HELP = "Enter a number, a new value, s: skip, d: does not say, u: undo, q: quit."
_HELP_PAIRS = "1: same, 2: different, s: skip, d: does not say, u: undo, q: quit."
_QUIT = "q"
_UNDO = "u"
_MARKS = {"s": SKIP, "d": SILENT}


def label(
    file: Annotated[Path, Argument(help="File of texts.")],
    condition: Annotated[str, Option(help="What to tell the texts apart by.")],
    output: Annotated[
        Path, Option(help="CSV file of the labels; continued if it exists."), Output(".csv")
    ],
    pairs: Annotated[
        bool, Option("--pairs", help="Ask whether two texts are the same or different.")
    ] = False,
    column: options.TextColumn = "text",
    model: options.Model = None,
    strict: options.Strict = False,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
) -> None:
    """Label texts in the terminal, and learn what you mean from 25 of them.

    Shows one text at a time, the one that teaches most. Type its value, or the number of one that
    you gave before. Each answer is on disk before the next text shows. From the eighth label on, a
    line says how well pairs of texts are told apart, measured on texts that nothing was learned
    from. The criterion is written next to the labels, with the suffix .criterion.

    With --pairs, shows two texts at a time, and you say whether they are the same. Values teach
    more than as many pairs; pairs are for what you cannot name.

    At the end prints a threshold to stdout, if there are enough labels for the promise that
    `condsim threshold` makes.

    `condsim serve --label` does the same on a page.

    **Examples**

    `condsim label tickets.csv --condition "the problem" --output problem.csv`

    `condsim label tickets.csv --condition "the problem" --pairs --output pairs.csv`
    """
    if output.suffix != ".csv":
        raise InputError(f"The labels are a CSV file, such as problem.csv; got {output}.")
    rows = TextFile(
        file, column, FileFormat.checked(separator, encoding), tables=False, strict=strict
    )
    encoder = load_encoder(model)
    kind = PairSession if pairs else LabelSession
    with kind.open(rows, condition, model=encoder, output=output) as session:
        _ask(session, Terminal())
    if session.criterion is not None:
        show_criterion(session.criterion)
        print_note(f"{session.criterion_file}: give it as --condition")
    print_note(f"{output}: {len(session.labels)} labels")


def _ask(session: Session[Any], terminal: Terminal) -> None:
    is_pairs = isinstance(session, PairSession)
    terminal.print(Text(_HELP_PAIRS if is_pairs else _HELP, style="dim"))
    key = session.next()
    while key is not None:
        progress = session.progress()
        values = list(progress.values) if is_pairs else sorted(progress.values)
        terminal.print(Text(f"\n{progress.line}", style="dim"))
        for text in session.texts_of(key):
            terminal.print(Text(text, style="bold"))
        for number, value in enumerate(values, start=1):
            terminal.print(Text(f"  {number}  {value}"))
        line = _read_answer(session.condition)
        if line is None or line == _QUIT:
            break
        if line == _UNDO:
            key = session.undo() or key
        elif line:
            try:
                session.answer(key, _value_of(line, values))
            except InputError as error:
                terminal.print(Text(str(error), style="red"))
            else:
                key = session.next()
    else:
        terminal.print(Text("Everything has an answer."))


def _read_answer(condition: str) -> str | None:
    """Read a line; None where the input ends."""
    try:
        return input(f"{condition}: ").strip()
    except (EOFError, KeyboardInterrupt):
        sys.stdout.write("\n")
        return None


def _value_of(line: str, values: Sequence[str]) -> str:
    """Return the value that an answer stands for: a number, a key or the value itself."""
    if line.isdecimal() and 0 < int(line) <= len(values):
        return values[int(line) - 1]
    return _MARKS.get(line, line)
