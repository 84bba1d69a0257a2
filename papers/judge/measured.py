"""Verdicts of the judge and of simpler methods on the written pairs, with intervals.

``python -m papers.judge.measured --out papers/docs/results/verdicts`` writes a page and its JSON.
Methods other than the judge are features with a logistic regression that is fitted on train.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import condsim
from condsim.evaluation.verdicts import verdict_figures
from condsim.io import write_json, write_text
from condsim.model.judge import MERGED, VERDICTS
from condsim.types import BoolArray, Float64Array
from papers.judge.rows import Row, read_requests, read_verdicts

CONDITIONS = (
    "the subject",
    "the attribute",
    "what is said about it",
    "who or what it is about",
    "the value",
    "the time",
    "whether both can be true",
    "the meaning",
)
NEGATION = {"not", "no", "never", "none", "nobody", "nothing", "without", "cannot"}
NEWNESS = set(
    "now new longer anymore since currently just latest today changed switched moved updated again "
    "already became replaced yesterday still instead".split()
)
Pairs = Sequence[dict[str, str]]


def _words(text: str) -> set[str]:
    return set("".join(c if c.isalnum() or c == "'" else " " for c in text.lower()).split())


def surface(pairs: Pairs) -> Float64Array:
    """Word overlap, lengths, and words of negation and newness, ``(n, 6)``."""
    rows = []
    for pair in pairs:
        first, second = _words(pair["sentence1"]), _words(pair["sentence2"])
        shared = len(first & second)
        negated = [
            any(w in NEGATION or w.endswith("n't") for w in side) for side in (first, second)
        ]
        rows.append(
            (
                shared / len(first | second),
                shared / len(second),
                np.log(len(second)),
                np.log(len(second) / len(first)),
                float(negated[0] != negated[1]),
                float(bool(NEWNESS & second)),
            )
        )
    return np.array(rows)


def plain(pairs: Pairs) -> Float64Array:
    """Similarity as a whole, and the surface, ``(n, 7)``."""
    return np.column_stack([_scores(pairs, None), surface(pairs)])


def conditional(pairs: Pairs) -> Float64Array:
    """Scores under eight conditions, and all of `plain`, ``(n, 15)``."""
    return np.column_stack([*(_scores(pairs, name) for name in CONDITIONS), plain(pairs)])


def _scores(pairs: Pairs, condition: str | None) -> Float64Array:
    first, second = ([pair[side] for pair in pairs] for side in ("sentence1", "sentence2"))
    scores: Float64Array = condsim.load().score(first, second, condition).astype(np.float64)
    return scores


METHODS: dict[str, Callable[[Pairs], Float64Array]] = {
    "overlap, length, negation and newness words": surface,
    "plain similarity": plain,
    "scores under eight conditions": conditional,
}


def figures(pairs: Pairs, found: Sequence[str]) -> dict[str, Any]:
    """Figures of verdicts on pairs, and the macro F1 of each domain, x 100."""
    right, first = ([pair[key] for pair in pairs] for key in ("verdict", "sentence1"))
    domains = {}
    for domain in sorted({pair["domain"] for pair in pairs}):
        rows = [row for row, pair in enumerate(pairs) if pair["domain"] == domain]
        columns = ([column[row] for row in rows] for column in (right, found, first))
        domains[domain] = verdict_figures(*columns, resamples=1).macro_f1
    return asdict(verdict_figures(right, found, first)) | {"domains": domains}


def recall_of_merges(mergeable: BoolArray, merge: Float64Array, *, precision: float) -> float:
    """Highest recall of merges with a precision, x 100."""
    precisions, recalls, _ = precision_recall_curve(mergeable, merge)
    return round(100 * float(recalls[precisions >= precision].max()), 1)


def entailment(run: Path, start: Path) -> Callable[[Pairs], Float64Array]:
    """Logits of a judge of entailment, read both ways, and the surface, ``(n, 12)``."""
    from papers.judge.train import Reader, logits_of, torch_judge

    judge, read = torch_judge(start, run), Reader(start, 128)

    def features(pairs: Pairs) -> Float64Array:
        first, second = ([pair[side] for pair in pairs] for side in ("sentence1", "sentence2"))
        columns = [
            logits_of(judge, read, [Row("", *texts, 0.0) for texts in zip(*sides, strict=True)])
            for sides in ((first, second), (second, first))
        ]
        logits = [column["entailment"].double().numpy() for column in columns]
        return np.column_stack([*logits, surface(pairs)])

    return features


def measure(
    judges: Sequence[condsim.Judge], methods: Mapping[str, Callable[[Pairs], Float64Array]]
) -> dict[str, Any]:
    """Measure every method on dev and test."""
    parts = {part: read_verdicts(part) for part in ("train", "dev", "test")}
    report: dict[str, Any] = {"pairs": {part: len(pairs) for part, pairs in parts.items()}}
    fitted = {}
    for name, method in methods.items():
        head = make_pipeline(
            StandardScaler(), PolynomialFeatures(2), LogisticRegression(C=0.1, max_iter=3000)
        )
        right = [pair["verdict"] for pair in parts["train"]]
        fitted[name] = (method, head.fit(method(parts["train"]), right))
    for part in ("dev", "test"):
        pairs = parts[part]
        report[part] = {
            name: figures(pairs, head.predict(method(pairs)).tolist())
            for name, (method, head) in fitted.items()
        }
        report[part] |= {judge.name: _judge_figures(judge, pairs) for judge in judges}
    return report


def _judge_figures(judge: condsim.Judge, pairs: Pairs) -> dict[str, Any]:
    first, second = ([pair[side] for pair in pairs] for side in ("sentence1", "sentence2"))
    judge.verdict(first[0], second[0])
    started = time.perf_counter()
    verdicts = judge.verdict(first, second)
    seconds = time.perf_counter() - started
    single = []
    for one, other in list(zip(first, second, strict=True))[:50]:
        before = time.perf_counter()
        judge.verdict(one, other)
        single.append(time.perf_counter() - before)
    mergeable = np.array([pair["verdict"] in MERGED for pair in pairs])
    merge = np.array([one.merge for one in verdicts])
    return figures(pairs, [one.verdict for one in verdicts]) | {
        "mean_probability": round(100 * float(np.mean([one.probability for one in verdicts])), 1),
        "merges_recall_at_precision_99": recall_of_merges(mergeable, merge, precision=0.99),
        "pairs_per_second": round(len(pairs) / seconds, 1),
        "milliseconds": round(1000 * float(np.median(single)), 1),
    }


REQUEST_CONDITIONS = ("the request", "the action", "the object")


def guard(judges: Sequence[condsim.Judge]) -> dict[str, Any]:
    """False accepts, x 100, of a cache that finds 80 % of the requests it has an answer to."""
    pairs = read_requests("test")
    same = np.array([bool(pair["same"]) for pair in pairs])
    first, second = ([pair[side] for pair in pairs] for side in ("sentence1", "sentence2"))
    model = condsim.load()
    under = np.stack([model.score(first, second, name) for name in REQUEST_CONDITIONS])
    scores = {
        "word overlap": surface(pairs)[:, 0],
        "plain similarity": model.score(first, second),
        "lowest score under three conditions": under.min(axis=0),
    }
    as_it_is = {}
    for judge in judges:
        verdicts = judge.verdict(first, second)
        scores[judge.name] = np.array([one.probabilities.get("duplicate", 0.0) for one in verdicts])
        accepted = np.array([one.verdict == "duplicate" for one in verdicts])
        as_it_is[judge.name] = {
            "recall": round(100 * float(accepted[same].mean()), 1),
            "false_accepts": round(100 * float(accepted[~same].mean()), 1),
        }
    return {
        "pairs": len(pairs),
        "false_accepts_at_recall_80": {
            name: round(100 * float((values[~same] >= np.quantile(values[same], 0.2)).mean()), 1)
            for name, values in scores.items()
        },
        "as_it_is": as_it_is,
    }


def page(report: Mapping[str, Any]) -> str:
    """Write the figures as a page."""
    parts = report["pairs"]
    columns = ("method", "macro F1", *VERDICTS, "wrongly merged %", "wrongly kept %")
    lines = [
        "# Verdicts",
        "",
        f"What the second of two texts is to the first, on {parts['test']:,} written pairs of",
        f"eight domains; no hand and no domain of the {parts['train']:,} training pairs is there.",
        "Macro F1 and F1 x 100, with the 95 % interval over first texts; chance is 20. All but the",
        "judge are features with a logistic regression that is fitted on the training pairs.",
        "[The data](../../../data/verdicts/README.md).",
        "",
        f"| {' | '.join(columns)} |",
        f"|---|{'---:|' * (len(columns) - 1)}",
    ]
    for name, row in report["test"].items():
        cells = [f"{row['macro_f1']} [{row['low']:.0f}, {row['high']:.0f}]", *row["f1"].values()]
        cells += [row["wrongly_merged"], row["wrongly_kept"]]
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    judges = {name: row for name, row in report["test"].items() if "milliseconds" in row}
    lines += [
        "",
        "A merge is a duplicate or an update. Wrongly merged and kept are shares of all pairs.",
        "Below: mean probability of the verdicts, share of them that are right, share of the",
        "merges found with at most 1 % of them false, and time on two cores.",
        "",
        "| judge | mean probability | right % | merges found % | ms a pair | pairs/s |",
        "|---|---:|---:|---:|---:|---:|",
        *(
            f"| {name} | {row['mean_probability']} | {row['right']} | "
            f"{row['merges_recall_at_precision_99']} | {row['milliseconds']:.0f} | "
            f"{row['pairs_per_second']:.0f} |"
            for name, row in judges.items()
        ),
        "",
        f"| macro F1 of a domain | {' | '.join(judges)} |",
        f"|---|{'---:|' * len(judges)}",
    ]
    for domain in next(iter(judges.values()))["domains"]:
        cells = [domain, *(str(row["domains"][domain]) for row in judges.values())]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "## Caches",
        "",
        f"{report['requests']['pairs']:,} pairs of requests, a third of them with one answer, "
        "written so that word overlap misleads: how many of the",
        "others are accepted where 80 % of the same are found.",
        "",
        "| method | false accepts % |",
        "|---|---:|",
    ]
    requests = report["requests"]
    for name, value in requests["false_accepts_at_recall_80"].items():
        lines.append(f"| {name} | {value} |")
    for name, row in requests["as_it_is"].items():
        lines += [
            "",
            f"By its verdict, {name} accepts {row['recall']} % of the same and "
            f"{row['false_accepts']} % of the others.",
        ]
    lines += [
        "",
        "`python -m papers.judge.measured` makes this page.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write the report and its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", nargs="*", default=[None], help="Folders, or large.")
    parser.add_argument("--entailment", type=Path, help="Run of first.yaml, measured as well.")
    parser.add_argument("--start", type=Path, help="Checkpoint that the run began with.")
    parser.add_argument("--out", type=Path, required=True, help="Page and JSON, without a suffix.")
    options = parser.parse_args()
    methods = dict(METHODS)
    if options.entailment is not None:
        methods["entailment, both ways"] = entailment(options.entailment, options.start)
    judges = [condsim.load_judge(name) for name in options.judge]
    report = measure(judges, methods) | {"requests": guard(judges)}
    write_json(report, options.out.with_suffix(".json"))
    write_text(options.out.with_suffix(".md"), page(report))


if __name__ == "__main__":
    main()
