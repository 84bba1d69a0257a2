"""Write the notebook of the tutorial from its page: ``python docs/notebook.py``.

The page is the source. A block of Python or bash becomes a code cell; one marked ``no-run``, which
takes minutes, becomes a cell with the tag ``slow``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
NOTEBOOK = ROOT / "examples" / "tutorial.ipynb"
SITE = "../docs/"
FENCE = re.compile(r"(<!-- no-run -->\n)?```(\w+)\n(.*?)```\n", re.DOTALL)
START = """This notebook is made from `docs/tutorial.md`. Run it in a clone; it writes into the
folder `runs/tutorial`."""
FOLDER = """import os
import shutil

shutil.copytree(".", "../runs/tutorial/examples", dirs_exist_ok=True)
os.chdir("../runs/tutorial")"""
# The server of the last step would never return, so its commands stay text.
ENDLESS = "condsim serve"
# The default model reaches no threshold there: the command ends with a message and status 2.
FAILING = "condsim threshold pairs.csv"


def markdown_cell(text: str) -> dict[str, object]:
    """Cell of text, with links to other pages of the site from the folder of the notebook."""
    text = re.sub(r"\]\((?!https?:|#)([^)]+)\)", rf"]({SITE}\1)", text.strip())
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def code_cell(text: str, *, slow: bool = False) -> dict[str, object]:
    """Cell of code without outputs."""
    tags = ["raises-exception"] if FAILING in text else ["slow"] if slow else []
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {"tags": tags} if tags else {},
        "outputs": [],
        "source": text.strip().splitlines(keepends=True),
    }


def notebook_text() -> str:
    """Notebook as JSON."""
    page = PAGE.read_text("utf-8")
    head, _, page = page.partition("\n## ")
    cells = [markdown_cell(f"{head}\n\n{START}"), code_cell(FOLDER)]
    page = f"## {page}"
    end = 0
    for match in FENCE.finditer(page):
        note, language, code = match.groups()
        if language not in ("python", "bash") or ENDLESS in code:
            continue
        if text := page[end : match.start()].strip():
            cells.append(markdown_cell(text))
        code = f"%%bash\n{code}" if language == "bash" else code
        cells.append(code_cell(code, slow=bool(note)))
        end = match.end()
    cells.append(markdown_cell(page[end:].replace("<!-- no-run -->\n", "")))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook_text(), encoding="utf-8")
