"""Turns files of image captions into the siblings file of a recipe.

    python examples/caption_siblings.py captions/*.tsv.gz --output siblings.tsv

Each input has the columns image_id and caption. Files of one image collection may overlap: an image
is known by the digits its name begins with.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from condsim.files import replacing
from condsim.training import caption_groups


def main() -> None:
    """Reads the arguments and writes the file."""
    parser = argparse.ArgumentParser(description="Captions to a siblings file.")
    parser.add_argument("captions", nargs="+", type=Path)
    parser.add_argument("--output", required=True, type=Path)
    arguments = parser.parse_args()
    rows = 0
    with (
        replacing(arguments.output) as partial,
        partial.open("w", encoding="utf-8", newline="") as out,
    ):
        out.write("group\ttext\n")
        for group, text in caption_groups(arguments.captions):
            out.write(f"{group}\t{text}\n")
            rows += 1
    print(f"{arguments.output}: {rows} captions")


if __name__ == "__main__":
    main()
