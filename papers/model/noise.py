"""Texts and conditions as people type them: typos, case, links, signatures, threads, emoji."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from papers.model.groups import Group, Input
from papers.model.sources import ROOT

SHARE_OF_GROUPS = 0.3
SHARE_OF_TEXTS = 0.6
SHARE_OF_CONDITIONS = 0.4
SHARE_OF_LONG = 0.5
"""Share of the texts with noise that get 20 to 300 words of others around them."""

SURROUNDINGS = ROOT / "data" / "noise"
_EMOJI = tuple("😀😅🙏👍🔥🎉😡😢🤔✅❌🚀💡⚠")
_LINKS = (
    "https://example.org/a/4821",
    "see www.example.com/item?id=77120",
    "http://shop.example.net/p/88-a1?ref=mail",
    "(link: https://example.org/x9f2)",
)
_TAGS = ("#update", "#fyi", "[EXT]", "FW:", "RE: RE:", "ref 20934-B", "ticket 55120", "@all")
_QUOTED = (
    "\n> On Monday someone wrote:\n> ok, will look at it",
    "\n\n> thanks for your message, we will come back to you",
    "\n----- Original message -----\nFrom: desk\nSubject: (no subject)",
)
_KEYS = ("note", "text", "body", "msg", "description", "summary")
_NAMES = ("Ana", "tom_k", "Priya", "J.", "mod", "Lea W", "user{n}", "Sam")

Lines = Mapping[str, Sequence[str]]
"""Lines that stand around a text, by kind."""


@cache
def surroundings(path: Path = SURROUNDINGS / "train.txt") -> Lines:
    """Read lines that stand around a text, by kind: ``kind ||| line``."""
    lines: dict[str, list[str]] = defaultdict(list)
    for row in path.read_text(encoding="utf-8").splitlines():
        kind, line = row.split(" ||| ")
        lines[kind].append(line.replace("\\n", "\n"))
    return lines


def misspelled(word: str, draw: random.Random, *, doubling: bool = True) -> str:
    """Swap, drop or, with ``doubling``, double a letter inside a word."""
    at = draw.randrange(1, len(word) - 1)
    head, letter, tail = word[:at], word[at], word[at + 1 :]
    typos = [head + tail[0] + letter + tail[1:], head + tail]
    if doubling:
        typos.append(head + 2 * letter + tail)
    return draw.choice(typos)


def _typo(text: str, draw: random.Random) -> str:
    """Misspell one word in eight, at least one."""
    words = text.split(" ")
    long = [place for place, word in enumerate(words) if len(word) > 3 and word.isalpha()]
    for place in draw.sample(long, min(len(long), 1 + len(words) // 8)):
        words[place] = misspelled(words[place], draw)
    return " ".join(words)


def _bare(text: str, draw: random.Random) -> str:
    return re.sub(r"[.,;:!?]+(?=\s|$)", "", text.lower())


def _row(text: str, draw: random.Random) -> str:
    return f"{draw.choice(_KEYS)} | {text} | {draw.randrange(100, 9999)} | open"


def _line(kind: str, draw: random.Random) -> str:
    return draw.choice(surroundings()[kind])


TEXT_NOISE: tuple[Callable[[str, random.Random], str], ...] = (
    _typo,
    _typo,
    _bare,
    _row,
    lambda text, draw: text.upper(),
    lambda text, draw: text.lower(),
    lambda text, draw: f"{_line('greeting', draw)} {text} {_line('closing', draw)}",
    lambda text, draw: f"{text}\n{_line('closing', draw)}",
    lambda text, draw: f"{text} {draw.choice(_EMOJI)}{draw.choice(('', draw.choice(_EMOJI)))}",
    lambda text, draw: f"{text} {draw.choice(_LINKS)}",
    lambda text, draw: f"{draw.choice(_TAGS)} {text}",
    lambda text, draw: text + draw.choice(_QUOTED),
)


def _drawn(lines: Sequence[str], draw: random.Random, least: int, most: int) -> list[str]:
    """So many different lines, with numbers in their places."""
    drawn = draw.sample(lines, min(len(lines), draw.randint(least, most)))
    return [_numbered(line, draw) for line in drawn]


def _numbered(line: str, draw: random.Random) -> str:
    return line.replace("{n}", str(draw.randrange(1000)))


def _thread(text: str, draw: random.Random, lines: Lines) -> str:
    """A message with small talk around the text, and older messages below it."""
    before, after = _drawn(lines["talk"], draw, 0, 5), _drawn(lines["talk"], draw, 3, 6)
    gap = draw.choice(("\n", " ", " "))
    body = gap.join([*before, text, *after])
    quoted = "".join(f"\n> {line}" for line in _drawn(lines["quoted"], draw, 0, 8))
    footer = draw.choice(("", "", "\n\n" + draw.choice(lines["footer"])))
    ends = draw.choice(lines["greeting"]), draw.choice(lines["closing"])
    return f"{ends[0]}\n{body}\n{ends[1]}{quoted}{footer}"


def _forwarded(text: str, draw: random.Random, lines: Lines) -> str:
    """A message that quotes the text below its own words."""
    above = "\n".join([draw.choice(lines["greeting"]), *_drawn(lines["talk"], draw, 2, 5)])
    below = "".join(f"\n> {line}" for line in _drawn(lines["quoted"], draw, 1, 6))
    footer = draw.choice(lines["footer"])
    return f"{above}\n{draw.choice(lines['closing'])}\n\n> {text}{below}\n\n{footer}"


def _page(text: str, draw: random.Random, lines: Lines) -> str:
    """A page of a website, with the text between its menus."""
    before, after = _drawn(lines["page"], draw, 1, 8), _drawn(lines["page"], draw, 6, 16)
    gap = draw.choice(("\n", "\n", " "))
    return gap.join([*before, text, *after])


def _log(text: str, draw: random.Random, lines: Lines) -> str:
    """Lines of a log, with the text among them."""
    rows = [*_drawn(lines["log"], draw, 0, 5), f"WARN  {text}", *_drawn(lines["log"], draw, 5, 11)]
    minute = draw.randrange(40)
    stamp = draw.choice(("09:{:02}:07 ", "2024-03-11T10:{:02}:41Z ", "[{}] ", "{}: "))
    return "\n".join(stamp.format(minute + at) + row for at, row in enumerate(rows))


def _chat(text: str, draw: random.Random, lines: Lines) -> str:
    """A chat of several people, with the text as what one of them says."""
    said = [*_drawn(lines["chat"], draw, 0, 8), text, *_drawn(lines["chat"], draw, 10, 16)]
    head = draw.choice(("{}: ", "<{}> ", "{} wrote: "))
    names = [_numbered(draw.choice(_NAMES), draw) for _ in said]
    return "\n".join(head.format(name) + line for name, line in zip(names, said, strict=True))


def _form(text: str, draw: random.Random, lines: Lines) -> str:
    """Fields of a form, with the text in one of them."""
    fields = _drawn(lines["form"], draw, 9, 14)
    fields.insert(draw.randrange(8), f"{draw.choice(_KEYS).capitalize()}: {text}")
    return draw.choice(("\n", "\n", " | ")).join(fields) + "\n" + draw.choice(lines["footer"])


LONG_NOISE: tuple[Callable[[str, random.Random, Lines], str], ...] = (
    _thread,
    _thread,
    _forwarded,
    _page,
    _log,
    _chat,
    _form,
)


def surrounded(text: str, draw: random.Random, lines: Lines) -> str:
    """Put a text into a message, a page, a log, a chat or a form."""
    return draw.choice(LONG_NOISE)(text, draw, lines)


def noised_text(text: str, draw: random.Random) -> str:
    """Write a text as somebody else would: with one or two kinds of noise, or among others."""
    if draw.random() < SHARE_OF_LONG:
        return surrounded(text, draw, surroundings())
    for change in draw.sample(TEXT_NOISE, draw.choice((1, 1, 2))):
        text = change(text, draw)
    return text


def noised_condition(condition: str, draw: random.Random) -> str:
    """Write a condition in capitals, with a typo, or without its article."""
    return draw.choice(
        (
            condition.upper(),
            condition.capitalize(),
            condition.title(),
            _typo(condition, draw),
            _typo(condition, draw),
            condition.removeprefix("the "),
            f'"{condition}"',
        )
    )


_STYLE = re.compile(r"styl|tone|sound|mood|formal|spell|case|typo|length|language|writ", re.I)


def with_noise(groups: Iterable[Group], *, seed: int) -> Iterator[Group]:
    """Give some of the groups noise; a text or a condition has the same in the whole group."""
    draw = random.Random(seed)
    for group in groups:
        about_style = any(condition and _STYLE.search(condition) for condition, _ in group.inputs)
        if group.plain or about_style or draw.random() >= SHARE_OF_GROUPS:
            yield group
            continue
        texts, conditions = (sorted({i[k] or "" for i in group.inputs}) for k in (1, 0))
        new_texts = {
            text: noised_text(text, draw) if draw.random() < SHARE_OF_TEXTS else text
            for text in texts
        }
        new_conditions = {
            condition: noised_condition(condition, draw)
            for condition in conditions
            if condition and draw.random() < SHARE_OF_CONDITIONS
        }
        inputs: list[Input] = [
            (new_conditions.get(condition or "", condition), new_texts[text])
            for condition, text in group.inputs
        ]
        yield replace(group, inputs=inputs)
