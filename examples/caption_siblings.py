"""Turns files of image captions into the siblings file of a recipe.

    python examples/caption_siblings.py captions/*.tsv.gz --output siblings.tsv

Each input is a gzipped TSV with a header, the image first and the caption last. Files of one image
collection may overlap: an image is known by the digits its name begins with.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import re
from pathlib import Path

from condsim.files import replacing


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
        for path in arguments.captions:
            with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
                for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                    image = re.match(r"\d+", row["image_id"])
                    group = image.group() if image else row["image_id"]
                    out.write(f"{group}\t{row['caption'].strip()}\n")
                    rows += 1
    print(f"{arguments.output}: {rows} captions")


if __name__ == "__main__":
    main()
