"""The page of a stage as an HTML form for Mechanical Turk, with hints while one types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from html import escape

from condsim.construction.annotation.guidelines import guidelines
from condsim.construction.annotation.hints import HINT_RULES
from condsim.construction.annotation.stages import VERDICTS, Stage

__all__ = ["mturk_form"]

_STYLE = """
<style>
  body { font-family: sans-serif; max-width: 50em; margin: 1em auto; line-height: 1.4; }
  .pair, .given { border: 1px solid #d0d0d8; border-radius: 6px; padding: .2em 1em; }
  .pair, .given { margin: .7em 0; }
  .given { border-left: 4px solid #617ada; }
  label { display: block; margin: .5em 0; }
  input[type=text] { width: 100%; box-sizing: border-box; padding: .4em; }
  .hint { background: #fff8e1; color: #6b4e00; margin: .2em 0; padding: .1em .6em; }
</style>"""

_SCRIPT = """
<script>
  // The rules of condsim.construction.annotation.hints; hints never block.
  const RULES = %s;
  const matches = (pattern, text) => new RegExp(pattern, "i").test(text);
  const sentence = (name) => document.getElementById(name).textContent;
  for (const field of document.querySelectorAll("input[type=text]")) {
    field.addEventListener("input", () => {
      const text = field.value.trim().replace(/\\s+/g, " ");
      const both = [sentence("sentence1"), sentence("sentence2")];
      const seen = new Set();
      const hints = document.getElementById("hints-" + field.name);
      hints.replaceChildren();
      if (!text) return;
      for (const rule of RULES) {
        if (seen.has(rule.rule) || !matches(rule.pattern, text)) continue;
        if (rule.needed && both.every((one) => matches(rule.needed, one))) continue;
        seen.add(rule.rule);
        const line = document.createElement("p");
        line.className = "hint";
        line.textContent = rule.rule + ". " + rule.text;
        hints.append(line);
      }
    });
  }
</script>"""


def _pair(first: str, second: str) -> str:
    return (
        f'<div class="pair"><p><b>Sentence 1</b>: <span id="{first}">${{{first}}}</span></p>'
        f'<p><b>Sentence 2</b>: <span id="{second}">${{{second}}}</span></p></div>'
    )


def _text(name: str, title: str) -> str:
    return (
        f'<label>{title}<input type="text" name="{name}" required maxlength="200" '
        f'autocomplete="off"></label><div id="hints-{name}"></div>'
    )


_WRITE = _text("high", "<b>High</b>: a condition under which they are alike") + _text(
    "low", "<b>Low</b>: a condition under which they differ"
)


def _rate(shown: str) -> str:
    choices = "".join(
        f'<label><input type="radio" name="rating" value="{verdict.label}" required> '
        f"<b>{f'{verdict.label}: ' if verdict.label > 0 else ''}{escape(verdict.name)}.</b> "
        f"{escape(verdict.meaning)}</label>"
        for verdict in VERDICTS
    )
    return (
        f'<div class="given"><p><b>Condition</b>: <span id="{shown}">${{{shown}}}</span></p></div>'
        f"<p><b>How similar are they under this condition alone?</b></p>{choices}"
    )


_FIELDS: Mapping[Stage, str] = {
    "qualification": (
        "<h3>Part 1. Write two conditions</h3>"
        + _pair("sentence1", "sentence2")
        + _WRITE
        + "<h3>Part 2. Rate another pair</h3>"
        + _pair("test_sentence1", "test_sentence2")
        + _rate("test_condition")
    ),
    "conditions": _pair("sentence1", "sentence2") + _WRITE,
    "verification": _pair("sentence1", "sentence2") + _rate("condition"),
}


def mturk_form(stage: Stage) -> str:
    """Makes the page of a stage.

    Args:
        stage: The stage.

    Returns:
        HTML with placeholders such as ``${sentence1}`` for the columns of the CSV file, to be
        pasted as the design layout of a project.
    """
    rules = json.dumps([asdict(rule) for rule in HINT_RULES])
    return (
        '<script src="https://assets.crowd.aws/crowd-html-elements.js"></script>'
        f'{_STYLE}\n<crowd-form answer-format="flatten-objects">\n'
        f"<details open><summary><b>Instructions</b></summary>{guidelines(stage)}</details>\n"
        f"{_FIELDS[stage]}\n</crowd-form>"
        f"{'' if stage == 'verification' else _SCRIPT % rules}\n"
    )
