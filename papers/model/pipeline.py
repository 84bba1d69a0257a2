"""Both default models from the data files: rows, the large model, the small one taught by it.

``python -m papers.model.pipeline --data ../shared/data --large CHECKPOINT --small CHECKPOINT --work
FOLDER``. A step whose output is there is skipped, and a killed training resumes.

```
rows ─► packed-large ─► large ─► taught ─┐
   └──► packed-small ────────────────────┴─► small ─► int8
```

``--small`` is all-MiniLM-L6-v2 or, to train further, the default model, rebuilt by
``condsim.training.restore``.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from condsim.data.held_out import held_out_texts
from condsim.rows.criteria.build import build_criteria
from condsim.rows.criteria.settings import CriteriaSettings
from condsim.training.export import export_onnx
from papers.default_data import trainable_sets, write_captions, write_labelled
from papers.model.folders import model_folder, samples
from papers.model.pack import pack_rows
from papers.model.plain import PlainVectors
from papers.model.rows import PLAIN_VECTORS, write_rows
from papers.model.sources import ROOT, Sources
from papers.model.teach import teach
from papers.model.train import Settings, train
from papers.relabelled import CAPTION_LABELS

_LOGGER = logging.getLogger("condsim")

SETTINGS = Path(__file__).parent / "settings"
CRITERIA = CriteriaSettings(rows=6000, hard=1.0)
OPINIONS = CriteriaSettings(rows=15_000, hard=1.0)
ATTRIBUTES = CriteriaSettings(rows=600, hard=1.0)
TAUGHT = "taught"
"""Source of the small model: inputs with the vectors of the large one."""


def write_balanced(data: Path, folder: Path) -> None:
    """Write the rows that are balanced under each condition, where they are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    held_out = data / "csts-reannotated" / "held-out.sha256"
    exclude = held_out_texts([held_out])
    sets = trainable_sets(data / "criteria")
    if not (folder / "csts.csv").is_file():
        write_labelled(
            data / "csts-reannotated" / "train.csv", folder / "csts.csv", exclude=exclude
        )
    if not (folder / "captions.csv").is_file():
        files = sorted((data / "captions").glob("*.tsv.gz"))
        write_captions(files, CAPTION_LABELS, folder / "captions.csv", exclude=exclude)
    own = sorted((ROOT / "data" / "attributes").glob("*.jsonl"))
    for name, paths, settings in (
        ("attributes", own, ATTRIBUTES),
        ("criteria", list(sets.values()), CRITERIA),
        ("opinions", [sets["mams"]], OPINIONS),
    ):
        if not (folder / f"{name}.csv").is_file():
            build_criteria(paths, folder / f"{name}.csv", settings, exclude=(held_out,))


def make_models(data: Path, large_start: Path, small_start: Path, plain: Path, work: Path) -> Path:
    """Make both models, or go on with them; returns the int8 folder of the small one.

    Args:
        data: Folder of the data sets.
        large_start: Checkpoint of all-mpnet-base-v2.
        small_start: Checkpoint that the small model begins from.
        plain: Checkpoint of all-MiniLM-L6-v2, whose vectors say which texts are near.
        work: Folder of all steps.
    """
    rows = work / "rows"
    write_balanced(data, rows / "balanced")
    vectors = PlainVectors(plain, rows / PLAIN_VECTORS)
    write_rows(Sources(data, rows / "balanced", vectors), rows)
    pack_rows(rows, large_start, plain, work / "packed-large")
    large = train(
        Settings.load(SETTINGS / "large.yaml"), work / "packed-large", large_start, work / "large"
    )
    # Plain texts keep their plain vectors in the large model; the small one learns all from it.
    pack_rows(rows, plain, plain, work / "packed-small")
    taught = work / "packed-small" / f"{TAUGHT}.npz"
    if not taught.is_file():
        teach(rows, large, plain, plain, taught)
    settings = Settings.load(SETTINGS / "small-taught.yaml")
    small = train(settings, work / "packed-small", small_start, work / "small")
    folder = model_folder(
        small,
        small_start,
        work / "small-model",
        name="condsim-minilm",
        base="sentence-transformers/all-MiniLM-L6-v2",
    )
    output = work / "small-int8"
    if not output.is_dir():
        export_onnx(folder, output, samples=samples(sorted(rows.glob("*.jsonl.gz"))))
    return output


def main() -> None:
    """Make both models."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--large", type=Path, required=True)
    parser.add_argument("--small", type=Path, required=True)
    parser.add_argument("--plain", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    make_models(options.data, options.large, options.small, options.plain, options.work)


if __name__ == "__main__":
    main()
