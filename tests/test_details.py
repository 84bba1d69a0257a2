"""The words that the triplets of ``data/details`` share, as their card has them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from condsim.model.baselines import WordOverlapScorer

FOLDER = Path(__file__).resolve().parents[1] / "data" / "details"
# Files of dozens of kinds, with few lines each.
MANY_KINDS = ("triplets-5.txt", "triplets-9.txt")
AS_THEY_COME = ("triplets-5.txt", "triplets-6.txt")


def overlaps():
    """Word overlap of the first text with the alike and the different one, by file and kind."""
    texts = defaultdict(list)
    for file in sorted(FOLDER.glob("triplets*.txt")):
        for line in file.read_text("utf-8").splitlines():
            kind, _, *triplet = (part.strip() for part in line.split("|||"))
            texts[file.name, "all" if file.name in MANY_KINDS else kind].append(triplet[:3])
    figures = {}
    for key, triplets in texts.items():
        first, alike, different = zip(*triplets, strict=True)
        scores = [WordOverlapScorer().score(first, other, None) for other in (alike, different)]
        figures[key] = np.array(scores)
    return figures


def test_details_card_has_the_word_overlap_of_every_kind():
    lines = ["| file | kind | lines | alike | different |", "|---|---|---:|---:|---:|"]
    for (file, kind), scores in overlaps().items():
        cells = " | ".join(f"{mean:.2f}" for mean in scores.mean(axis=1))
        lines.append(f"| `{file}` | {kind} | {scores.shape[1]} | {cells} |")
    card = (FOLDER / "README.md").read_text("utf-8")
    table = card.partition("<!-- overlap -->\n")[2].partition("<!-- /overlap -->")[0]
    assert table.splitlines() == lines


def test_details_alike_texts_share_few_words_except_in_scope_and_roles():
    figures = overlaps()
    means = {key: scores[0].mean() for key, scores in figures.items()}
    many = {key for key, mean in means.items() if mean > 0.1}
    roles = {(f"triplets{part}.txt", "roles") for part in ("", "-7", "-8")}
    assert many == {("triplets-4.txt", "scope"), *roles}
    alike, different = figures["triplets-4.txt", "scope"]
    assert ((alike > 0.5).sum(), (alike >= different).sum()) == (201, 83)
    natural = [value for key, value in figures.items() if key[0] in AS_THEY_COME]
    alike, different = np.hstack(natural)
    assert ((alike >= different).sum(), alike.size) == (192, 1479)
