"""Commands as typer runs them: their files, --quiet, and the words of the command line."""

from __future__ import annotations

import functools
import inspect
import os
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stderr
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer import Option
from typer.core import TyperCommand

from condsim.cli.files import check_files, declared_files, standard_streams
from condsim.data.row import MissingColumnsError
from condsim.errors import InputError
from condsim.model.inputs import collect_truncations
from condsim.model.legibility import collect_unread

# Any command takes the files that are its arguments by these, too.
_FILE_OPTIONS = ("--file", "--data")
# As the help shows an option that needs no value.
_BARE = "[FILE]"
STATUS_OF_CLOSED_PIPE = 141
"""Status as a shell reports it of a program whose reader, such as head, has ended."""
_QUIET = inspect.Parameter(
    "quiet",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool, Option("--quiet", help="Print no progress and no notes, only errors.")
    ],
)


class OptionGroup:
    """Base of a frozen dataclass whose fields are options of every command that takes one."""

    @classmethod
    def names(cls) -> list[str]:
        """List its fields."""
        return [field.name for field in fields(cls)]  # type: ignore[arg-type]

    @classmethod
    def parameters(cls) -> list[inspect.Parameter]:
        """List its fields as parameters of a function."""
        hints = get_type_hints(cls, include_extras=True)
        defaults = {field.name: field.default for field in fields(cls)}  # type: ignore[arg-type]
        return [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name]
            )
            for name, default in defaults.items()
        ]


def guard(app: typer.Typer) -> None:
    """Give each command --quiet and ``-`` for standard streams, and check its files."""
    for command in app.registered_commands:
        command.cls = Command
        if command.callback is not None and not hasattr(command.callback, "__wrapped__"):
            command.callback = _wrap_command(command.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            guard(group.typer_instance)


def _wrap_command(command: Callable[..., object]) -> Callable[..., object]:
    signature = inspect.signature(command, eval_str=True)
    groups = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if isinstance(parameter.annotation, type) and issubclass(parameter.annotation, OptionGroup)
    }
    parameters = []
    for name, parameter in signature.parameters.items():
        members = groups[name].parameters() if name in groups else [parameter]
        parameters += [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in members]
    marks = declared_files(parameters)

    @functools.wraps(command)
    def run(*, quiet: bool, **options: Any) -> object:  # noqa: ANN401
        check_files(options, marks)
        with ExitStack() as stack:
            if quiet:
                nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
                stack.enter_context(redirect_stderr(nowhere))
                stack.enter_context(collect_truncations(warn=False))
                stack.enter_context(collect_unread(log=False))
            options = stack.enter_context(standard_streams(options, marks))
            for name, group in groups.items():
                options[name] = group(**{key: options.pop(key) for key in group.names()})
            try:
                return command(**options)
            except BrokenPipeError:
                # Typer would end with status 1, which has another meaning here.
                raise SystemExit(STATUS_OF_CLOSED_PIPE) from None

    # Typer reads the options from the signature.
    parameters.append(_QUIET)
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.files = marks  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


class Command(TyperCommand):
    """A command that takes its files by --file and --data too, and --json without a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  (typer's click)
        """Parse the words of a command line."""
        words = self._usual_words(args)
        self._check_values(ctx, words)
        return super().parse_args(ctx, words)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run the command; the error for a missing column says which options name it."""
        try:
            return super().invoke(ctx)
        except MissingColumnsError as error:
            flags = [
                each.opts[0]
                for each in self.params
                if not _is_argument(each) and ctx.params.get(each.name) in error.missing
            ]
            if not flags:
                raise
            raise InputError(f"{error} Name yours with {', '.join(flags)}.") from None

    def _usual_words(self, args: Sequence[str]) -> list[str]:
        """Put files that options name at the end, and ``-`` after a bare option."""
        # The name of an argument is among its options, too.
        parameters: dict[str, Any] = {name: each for each in self.params for name in each.opts}
        has_files = any(_is_argument(each) and self._is_file(each) for each in self.params)
        words, usual, files = deque(args), list[str](), list[str]()
        while words:
            word = words.popleft()
            name, equals, value = word.partition("=")
            if word == "--":
                usual += [word, *words]
                break
            if has_files and name in _FILE_OPTIONS and name not in parameters and (equals or words):
                files.append(value if equals else words.popleft())
            elif getattr(parameters.get(word), "metavar", None) == _BARE and (
                not words or (words[0].startswith("-") and words[0] != "-")
            ):
                usual.append(f"{word}=-")
            else:
                usual.append(word)
        return usual + files

    def _is_file(self, parameter: Any) -> bool:  # noqa: ANN401
        return parameter.name in getattr(self.callback, "files", ())

    def _check_values(self, ctx: Any, words: Sequence[str]) -> None:  # noqa: ANN401
        """Reject an empty value, and an option given twice of which all but the last is lost."""
        values, _, given = self.make_parser(ctx).parse_args(list(words))
        counts: Counter[Any] = Counter(given)
        for parameter, times in counts.items():
            name, value = parameter.opts[0], values.get(parameter.name)
            is_argument = _is_argument(parameter)
            if not is_argument and times > 1 and not parameter.multiple and not parameter.is_flag:
                raise InputError(f"{name}: give one here; got {times}.")
            words_of = value if isinstance(value, list | tuple) else [value]
            spaces = "" if name == "--separator" else None
            is_empty = any(isinstance(word, str) and not word.strip(spaces) for word in words_of)
            if is_empty and is_argument and self._is_file(parameter):
                raise InputError("The name of a file is empty.")
            if is_empty and not is_argument:
                raise InputError(f"{name} is empty; give it a value, or leave it out.")


def _is_argument(parameter: Any) -> bool:  # noqa: ANN401
    return bool(parameter.param_type_name == "argument")
