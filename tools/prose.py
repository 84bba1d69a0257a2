"""Check the English of docstrings, comments, messages and pages against the rules of the house.

Run it as ``python tools/prose.py [PATH ...]``; without paths it checks what `make check` checks.
A finding is one line, ``file:line: rule: text (hint)``, and any finding makes the exit status 1.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = ("src", "packages/*/src", "papers", "benchmarks", "tools")
# Also checked for American spelling, of identifiers too.
SPELLED = ("conftest.py", "tests", "packages/*/tests")
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs",
    "papers/docs",
    "packages/*/README.md",
)
# Keyword arguments whose text a user reads.
HELP = {"help", "short_help", "epilog", "description", "hint", "show_default"}
# Kinds of text; a trailing comment stands behind code.
DOCSTRING, COMMENT, TRAILING, MESSAGE = "docstring", "comment", "trailing", "message"
PAGE, NAME = "page", "name"
ALL = frozenset({DOCSTRING, COMMENT, TRAILING, MESSAGE, PAGE})


@dataclass(frozen=True)
class Rule:
    """A pattern that a kind of text must not contain, and what to write instead."""

    name: str
    pattern: re.Pattern[str]
    hint: str
    kinds: frozenset[str]


def _rule(name: str, pattern: str, hint: str, kinds: Iterable[str], flags: int = 0) -> Rule:
    return Rule(name, re.compile(pattern, flags), hint, frozenset(kinds))


def _word(pattern: str, hint: str, kinds: Iterable[str] = ALL) -> Rule:
    """Rule for words in either case; a space matches a line break too."""
    pattern = pattern.replace(" ", r"\s+")
    return _rule("word", rf"\b(?:{pattern})\b", hint, kinds, re.IGNORECASE)


_ISE = (
    "categor|critic|general|initial|maxim|minim|normal|optim|organ|penal|quant|random|recogn|serial"
    "|special|standard|summar|token|util|visual"
)
SPELLING = _rule(
    "spelling",
    "(?:behavi|col|fav|flav|hon|neighb)our|labell(?:ed|ing)(?!by)|modell(?:ed|ing)|travell(?:ed|ing)"
    rf"|\bcancell(?:ed|ing)\b|(?:{_ISE})is(?:e|ed|es|er|ing|ation)(?![a-z])|analys(?:ed?|ing)\b"
    r"|centre(?:d|s)?(?![a-z])|centring|artefact|judgement|learnt|licence|lightgrey|\b(?:spelt|towards)\b",
    "it the American way",
    ALL | {NAME},
    re.IGNORECASE,
)
_VERBS = (
    "Adds Answers Asks Builds Calls Carries Checks Collects Computes Copies Cuts Decides Draws"
    " Encodes Finds Gathers Gives Goes Holds Keeps Lets Loads Makes Measures Moves Opens Prints"
    " Puts Reads Refuses Rejects Removes Returns Runs Says Sends Sets Takes Tells Turns Writes"
)
_COMPARATIVE = r"(?:longer|more|less|better|worse|faster|slower|larger|smaller|higher|lower)\b"
RULES = (
    _rule(
        "opening",
        r"\A(?:(?:What|How|Whether|Which|Where|Whose)\b"
        rf"|(?:{'|'.join(_VERBS.split())})\b(?!:| (?:of|that|to|for|in|per)\b)"
        r"|[A-Z]\w{2,}[^s\W]s (?:an?|the|what|how|whether|each|all|every|which|it|them)\b)",
        "begin with an imperative verb or the noun",
        {DOCSTRING},
    ),
    _rule(
        "trailing",
        # Tensor shapes, as `# (batch, width)` or `# [rows, 2] float32`, and words to tools stay.
        r"\A(?!noqa|type: ignore|pragma|fmt:|[(\[])",
        "put the comment on a line of its own above the step",
        {TRAILING},
    ),
    _rule("got", r"(?:\A|[.:;] )Got\b", '"expected ..., got ..." in one clause', {MESSAGE}),
    _word("anew", '"again"'),
    _word("besides?", '"next to", "alongside" or "as well as"'),
    _word("heed(?:s|ed)?", '"follow" or "respect"'),
    _word("mend(?:s|ed|ing)?", '"fix" or "repair"'),
    _word("likewise", '"also" or "in the same way"'),
    _word("whichever", '"the ... that" or "any"'),
    _word("there(?:of|upon)|whereof|wherein", '"of it", "in which"'),
    _word("practis(?:e|es|ed|ing)", '"practice" or "train"'),
    _word("(?:model|one|head|method|calibration) that ships|bundled model", '"the default model"'),
    _word("what is told", '"the report" or "the message"'),
    _word("goes on", '"continues"'),
    _word(rf"(?<!there\s)(?:is|are) no(?! {_COMPARATIVE})", '"is not a", "are not"'),
    _word("(?:that|those) of", 'the noun again, a possessive or "as in"'),
    _word("(?:holds?|has|have) no such|holds? no", '"does not contain"'),
    _word("of (?:your|its|their|one's|our|his) own", '"your own", "a separate"'),
    SPELLING,
)


@dataclass(frozen=True)
class Text:
    """A piece of prose, its kind and the line where it starts."""

    kind: str
    line: int
    text: str


def _constants(node: ast.AST) -> Iterator[Text]:
    """String literals below a node, f-strings whole with `{}` for their values."""
    if isinstance(node, ast.JoinedStr):
        parts = [str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values]
        yield Text(MESSAGE, node.lineno, "".join(parts))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield Text(MESSAGE, node.lineno, node.value)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _constants(child)


def _docstring(node: ast.AST) -> Iterator[Text]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if text := ast.get_docstring(node):
            yield Text(DOCSTRING, node.body[0].lineno, text)


def _names(source: str) -> Iterator[Text]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            yield Text(NAME, token.start[0], token.string)


def _comments(source: str) -> Iterator[Text]:
    """Comments behind code, and blocks of whole-line comments."""
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, text = token.start[0], token.string.lstrip("#").strip()
        if token.line[: token.start[1]].strip():
            yield Text(TRAILING, line, text)
            continue
        if block and line != last + 1:
            yield Text(COMMENT, last - len(block) + 1, "\n".join(block))
            block = []
        block.append(text)
        last = line
    if block:
        yield Text(COMMENT, last - len(block) + 1, "\n".join(block))


def python_texts(source: str) -> Iterator[Text]:
    """Docstrings, comments, messages and names of a module."""
    messages: set[Text] = set()
    for node in ast.walk(ast.parse(source)):
        yield from _docstring(node)
        if isinstance(node, ast.Raise) and node.exc is not None:
            messages.update(_constants(node.exc))
        elif isinstance(node, ast.keyword) and node.arg in HELP:
            messages.update(_constants(node.value))
    yield from messages
    yield from _comments(source)
    yield from _names(source)


def page_text(source: str) -> Text:
    """Text of a Markdown page, with code blocks, inline code and link targets left out."""
    source = re.sub(r"^ *(```|~~~).*?^ *\1", _blank, source, flags=re.MULTILINE | re.DOTALL)
    return Text(PAGE, 1, re.sub(r"\]\([^)]*\)", "]", source))


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def findings(path: Path, rules: Iterable[Rule] = RULES) -> Iterator[str]:
    """Findings of one file, one line each."""
    source = path.read_text("utf-8")
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    if path.suffix == ".py":
        texts = python_texts(source)
    else:
        texts = iter([page_text(source)])
    for text in sorted(texts, key=lambda text: (text.line, text.text)):
        prose = re.sub(r"(`+)[^`\n]*\1", "`", text.text)
        for rule in rules:
            if text.kind not in rule.kinds:
                continue
            for match in rule.pattern.finditer(prose):
                line = text.line + prose.count("\n", 0, match.start())
                quote = " ".join((match[0] or prose).split())
                yield f"{name}:{line}: {rule.name}: {quote} (write {rule.hint})"


def paths_of(patterns: Iterable[str]) -> list[Path]:
    """Paths in the repository that match patterns."""
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """Python files and pages below paths, in order."""
    for path in paths:
        yield from sorted([*path.rglob("*.py"), *path.rglob("*.md")]) if path.is_dir() else [path]


def main() -> int:
    """Print the findings and return the exit status."""
    paths = [Path(arg).resolve() for arg in sys.argv[1:]]
    lines = [line for path in files(paths or paths_of((*CODE, *PAGES))) for line in findings(path)]
    for path in files([] if paths else paths_of(SPELLED)):
        lines += findings(path, [SPELLING])
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
