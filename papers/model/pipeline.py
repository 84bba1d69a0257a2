"""Both default models from the data files: rows, the large model, the small one taught by it.

```
rows ─► packed-large ─► large ─┬─────────────────────────► large-model ─► exported/large
  │                            ▼  (its vectors)
  └───► packed-small ─► taught ─► small-vectors ─► small ─► small-model ─► exported/small
```

``python -m papers default-model`` runs it. A step whose output is there is skipped, and a killed
training resumes; there is no average of models but the running one of each training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from condsim.errors import require
from condsim.model.builders import resolve_backbone
from condsim.model.settings import MODEL_FILE, model_folder as folder_of
from condsim.training.export import restore_onnx
from papers.model.balanced import write_balanced
from papers.model.pack import pack_rows
from papers.model.plain import PlainVectors
from papers.model.rows import PLAIN_VECTORS, write_rows
from papers.model.shipping import LARGE, SMALL, ShippedModel, model_folder, ship
from papers.model.sources import Sources
from papers.model.teach import TAUGHT, teach
from papers.model.train import Settings, train

SETTINGS = Path(__file__).parent / "settings"


@dataclass(frozen=True)
class Checkpoints:
    """Checkpoint folders that the models begin from.

    Attributes:
        large: all-mpnet-base-v2.
        small: all-MiniLM-L6-v2, or a model made from it.
        plain: all-MiniLM-L6-v2, whose vectors say which texts are near.
    """

    large: Path
    small: Path
    plain: Path

    @classmethod
    def find(cls, large: str, small: str, work: Path) -> Checkpoints:
        """Find the folders of names; a model that was exported is rebuilt below ``work``."""
        return cls(*(_checkpoint(name, work) for name in (large, small, SMALL.base)))


def _checkpoint(name: str, work: Path) -> Path:
    exported = folder_of(name)
    if (exported / MODEL_FILE).is_file():
        rebuilt = work / "start"
        if not rebuilt.is_dir():
            restore_onnx(exported, rebuilt)
        return rebuilt
    folder = Path(resolve_backbone(name))
    if not folder.is_dir():
        hub = require("huggingface_hub", extra="train")
        folder = Path(hub.snapshot_download(name))
    return folder


def make_models(
    data: Path, starts: Checkpoints, work: Path, *, settings: Path = SETTINGS
) -> Mapping[ShippedModel, Path]:
    """Make both models, or go on with them; returns the folders that ship."""
    rows = work / "rows"
    write_balanced(data, rows / "balanced")
    vectors = PlainVectors(starts.plain, rows / PLAIN_VECTORS)
    sources = Sources(data, rows / "balanced", vectors)
    write_rows(sources, rows)
    pack_rows(rows, starts.large, starts.plain, work / "packed-large")
    recipe = Settings.load(settings / "large.yaml")
    large = train(recipe, work / "packed-large", starts.large, work / "large")
    # Plain texts keep their plain vectors in the large model; the small one learns all from it.
    pack_rows(rows, starts.small, starts.plain, work / "packed-small")
    taught = work / "packed-small" / f"{TAUGHT}.npz"
    if not taught.is_file():
        teach(rows, large, starts.small, starts.plain, taught)
    small = starts.small
    for part in ("small-vectors", "small"):
        recipe = Settings.load(settings / f"{part}.yaml")
        small = train(recipe, work / "packed-small", small, work / part)
    shipped = {}
    for model, checkpoint, start in ((LARGE, large, starts.large), (SMALL, small, starts.small)):
        folder = model_folder(model, checkpoint, start, work / f"{checkpoint.name}-model")
        output = work / "exported" / checkpoint.name
        shipped[model] = ship(model, folder, output, sources, rows)
    return shipped
