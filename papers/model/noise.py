"""Texts and conditions as people type them: typos, case, links, signatures, threads, emoji."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from papers.model.groups import Group, Input

SHARE_OF_GROUPS = 0.25
SHARE_OF_TEXTS = 0.6
SHARE_OF_CONDITIONS = 0.4
SHARE_OF_LONG = 0.15
"""Share of the texts with noise that get 30 to 180 words of others around them."""

_GREETINGS = ("Hi,", "Hello,", "Hi team,", "hey", "Dear all,", "Good morning,", "hi there -")
_CLOSINGS = (
    "Thanks, Jo",
    "Best regards\nM. Keller\nOffice 2.14, ext. 3391",
    "Cheers",
    "Sent from my phone",
    "-- \nP. Novak | Support | +44 20 5550 0142",
    "thx!!",
    "Kind regards, Ines",
    "BR",
)
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
_SMALL_TALK = (
    "Sorry for the late answer, the week was full.",
    "I was on leave until yesterday and am still catching up.",
    "As agreed on the phone, here is a short summary.",
    "Please keep everybody in copy when you reply.",
    "I'm writing from the train, so forgive the typing.",
    "We talked about this at the last meeting as well.",
    "Let me know if anything is unclear or missing.",
    "I'm not sure who is responsible for this, so I'm sending it to both of you.",
    "You will find the rest in the shared folder.",
    "If this reached you by mistake, please delete it.",
    "There is nothing else to report from our side for now.",
    "I'll be in the office again on Thursday, in case you want to talk.",
    "Nobody has answered my first message, so here it is again.",
    "Have a good weekend, and greetings to the others.",
)
_PAGE_LINES = (
    "Home | Products | About us | Contact | Sign in",
    "This website uses cookies. Accept all / Reject / Settings",
    "Share this page: mail, print, copy the link",
    "You are here: start > archive > item",
    "Newsletter: leave us your address and never miss anything",
    "Related items (12) - show more",
    "Was this page helpful? Yes / No",
    "All rights reserved. Terms of use. Privacy. Imprint.",
    "Skip to content",
    "Last change of this page: see history",
)
_LOG_LINES = (
    "INFO  worker-{n} started",
    "DEBUG cache: {n} entries, 0 expired",
    "INFO  heartbeat ok ({n} ms)",
    "DEBUG poll {n} returned nothing",
    "INFO  session {n} closed by client",
    "DEBUG gc paused for {n} ms",
)
_KEYS = ("note", "text", "body", "msg", "description", "summary")


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


TEXT_NOISE: tuple[Callable[[str, random.Random], str], ...] = (
    _typo,
    _typo,
    _bare,
    _row,
    lambda text, draw: text.upper(),
    lambda text, draw: text.lower(),
    lambda text, draw: f"{draw.choice(_GREETINGS)} {text} {draw.choice(_CLOSINGS)}",
    lambda text, draw: f"{text}\n{draw.choice(_CLOSINGS)}",
    lambda text, draw: f"{text} {draw.choice(_EMOJI)}{draw.choice(('', draw.choice(_EMOJI)))}",
    lambda text, draw: f"{text} {draw.choice(_LINKS)}",
    lambda text, draw: f"{draw.choice(_TAGS)} {text}",
    lambda text, draw: text + draw.choice(_QUOTED),
)


def _thread(text: str, draw: random.Random) -> str:
    """A message with small talk around the text and older messages below it."""
    talk = draw.sample(_SMALL_TALK, draw.randint(6, len(_SMALL_TALK)))
    parts = [draw.choice(_GREETINGS), *talk[:3], text, *talk[3:5], draw.choice(_CLOSINGS)]
    return "\n".join(parts) + draw.choice(_QUOTED) + "".join(f"\n> {line}" for line in talk[5:])


def _page(text: str, draw: random.Random) -> str:
    """A page of a website, with the text between its menus."""
    lines = draw.sample(_PAGE_LINES, draw.randint(5, len(_PAGE_LINES)))
    return "\n".join([*lines[:3], text, *lines[3:]])


def _log(text: str, draw: random.Random) -> str:
    """Lines of a log, with the text among them."""
    lines = [
        draw.choice(_LOG_LINES).format(n=draw.randrange(1000)) for _ in range(draw.randint(8, 16))
    ]
    lines.insert(draw.randrange(len(lines)), f"WARN  {text}")
    minute = draw.randrange(40)
    return "\n".join(f"09:{minute + at}:07 {line}" for at, line in enumerate(lines))


LONG_NOISE: tuple[Callable[[str, random.Random], str], ...] = (_thread, _thread, _page, _log)


def noised_text(text: str, draw: random.Random) -> str:
    """Write a text as somebody else would: with one or two kinds of noise, or among others."""
    if draw.random() < SHARE_OF_LONG:
        return draw.choice(LONG_NOISE)(text, draw)
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
