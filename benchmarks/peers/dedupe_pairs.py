"""The peer of ``learn_pairs``: the active learner of dedupe, on pairs whose label is known.

Run it as ``python dedupe_pairs.py < request.json`` where dedupe 3.0.3 is installed. The request
has ``pool`` and ``tested`` (pairs of texts), ``same`` (labels of the pool), ``labels`` (how many)
and ``seed``. For each number of labels it prints the indices of the pairs that were asked for and
the probability of each tested pair.

dedupe asks for pairs within its blocks, most of which have no known label here. So the learner
chooses among the pairs of the pool, by its rule for pairs that blocks cover: the pair whose
probability is nearest to a number drawn at random.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Sequence

import dedupe
import numpy as np
from dedupe.labeler import MatchLearner

Pair = tuple[dict[str, str], dict[str, str]]


def main() -> None:
    """Label pairs one at a time, and score the tested ones after each number of labels."""
    request = json.load(sys.stdin)
    generator = random.Random(request["seed"])
    fields = [dedupe.variables.String("text"), dedupe.variables.Text("text")]
    matching = dedupe.Dedupe(fields, num_cores=0)
    pool, tested = records(request["pool"]), records(request["tested"])
    began = time.process_time()
    learner = MatchLearner(matching.data_model.distances, pool)
    rows, asked = list(range(len(pool))), []
    # It begins with a text and itself, four times, and with two texts drawn at random.
    first, second = generator.choice(pool)[0], generator.choice(pool)[1]
    known, labels = [(first, first)] * 4 + [(first, second)], [1, 1, 1, 1, 0]
    report: dict[str, object] = {}
    for number in range(1, max(request["labels"]) + 1):
        learner.fit(known, labels)
        target = generator.random()
        place = int(np.abs(learner.candidate_scores()[:, 0] - target).argmin())
        known.append(learner.candidates[place])
        labels.append(int(request["same"][rows[place]]))
        asked.append(rows.pop(place))
        learner.remove(place)
        if number in request["labels"]:
            classifier = matching.classifier
            classifier.n_jobs = 1
            classifier.fit(matching.data_model.distances(known[5:]), labels[5:])
            chances = classifier.predict_proba(matching.data_model.distances(tested))[:, 1]
            report[str(number)] = {"asked": list(asked), "probabilities": chances.tolist()}
    report["seconds"] = time.process_time() - began
    sys.stdout.write(json.dumps(report) + "\n")


def records(pairs: Sequence[tuple[str, str]]) -> list[Pair]:
    """Make the records that dedupe compares."""
    return [({"text": first}, {"text": second}) for first, second in pairs]


if __name__ == "__main__":
    main()
