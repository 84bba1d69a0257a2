"""The peer of ``learn`` for values: SetFit, with its defaults, on the same labels.

Run it as ``python setfit_values.py FOLDER < request.json`` where setfit 1.1.3 is installed, with
transformers 4 and sentence-transformers 5. FOLDER has all-MiniLM-L6-v2. The request has the keys
``texts``, ``values`` and ``tested``; it prints JSON with the value of each tested text and the
seconds of training and assigning, without loading the model.
"""

from __future__ import annotations

import json
import sys
import time
from tempfile import TemporaryDirectory

import torch
from datasets import Dataset
from setfit import SetFitModel, Trainer, TrainingArguments

_THREADS = 1


def main(folder: str) -> None:
    """Train on the texts of the request, and assign values to the tested ones."""
    torch.set_num_threads(_THREADS)
    request = json.load(sys.stdin)
    names = sorted(set(request["values"]))
    model = SetFitModel.from_pretrained(folder, device="cpu")
    rows = Dataset.from_dict(
        {"text": request["texts"], "label": [names.index(value) for value in request["values"]]}
    )
    began, used = time.perf_counter(), time.process_time()
    with TemporaryDirectory() as output:
        arguments = TrainingArguments(
            output_dir=output, save_strategy="no", report_to="none", show_progress_bar=False
        )
        Trainer(model=model, args=arguments, train_dataset=rows).train()
        assigned = model.predict(request["tested"], use_labels=False).tolist()
    report = {
        "values": [names[value] for value in assigned],
        "seconds": time.perf_counter() - began,
        "processor_seconds": time.process_time() - used,
    }
    sys.stdout.write("\n" + json.dumps(report) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
