"""Rows that break the rules of their kind: the message names the file, the row and the rule."""

from __future__ import annotations

import pytest

from condsim.data.csts import load_applicability, load_csts
from condsim.data.held_out import held_out_texts
from condsim.data.load import load_pairs, load_stsb, load_task
from condsim.data.nli_triplets import load_nli, load_triplets
from condsim.data.rewordings import load_rewordings
from condsim.data.tables import iter_criteria
from condsim.data.written import load_written
from condsim.errors import InputError

CSTS = "sentence1,sentence2,condition,label\nA,B,C,1\n"
SCORED = "sentence1,sentence2,score\n"
STSB = "main-news\tMSRpar\t2012train\t0001\t%s\t%s\t%s\n"
GOOD_STSB = STSB % (2.5, "A dog.", "A cat.")
NLI = "premise\thypothesis\tlabel\n"
TRIPLETS = "anchor\tpositive\tnegative\n"
REWORDINGS = "sentence1,sentence2,condition_group,condition\n"
APPLICABILITY = "sentence1,sentence2,condition,label\nx,y,c,-1\n"
JSON_PAIR = '{"sentence1": "A", "sentence2": "B", '

LABEL = r"row 2 \(line 3\), column 'label': must be a number from 1 to 5, or -1 .*, got "
SCORE = r"row 1 \(line 2\), column 'score': must be a number from 0 to 1, or -1 .*, got "
WRITTEN = "d ||| A ||| B ||| "

BAD_ROWS = {
    load_csts: [
        (".csv", CSTS + " ,B,C,2\n", r"row 2 \(line 3\), column 'sentence1': must not be empty"),
        (
            ".csv",
            CSTS + "A,B,???,2\n",
            r"row 2 .*'condition': must have a letter, .*got '\?\?\?'",
        ),
        *(
            (".csv", f'{CSTS}A,B,D,"{label}"\n', LABEL + repr(label))
            for label in ("5.01", "-2", "-inf", "high", "different")
        ),
        (".jsonl", JSON_PAIR + '"condition": null}\n', r"row 1 .*'condition': must not be empty"),
        (".jsonl", JSON_PAIR + '"condition": 3}\n', "column 'condition': must be text, got 3"),
        (
            ".jsonl",
            JSON_PAIR + '"condition": "C", "label": 1' + "0" * 400 + "}",
            "must be a number",
        ),
    ],
    load_pairs: [
        (".csv", SCORED + "A,B,1.01\n", SCORE + "'1.01'"),
        (".csv", SCORED + "A,B,high\n", "must be a number, or a word such as .*, got 'high'"),
        (".csv", SCORED + "A, ,1\n", "column 'sentence2': must not be empty"),
        (".csv", SCORED + "A,B,2\nA,B,7\n", "from 1 to 5, .*, got '7'. Name another scale"),
    ],
    load_stsb: [
        *(
            (
                ".csv",
                GOOD_STSB + STSB % (score, "A", "B"),
                r"row 2 \(line 2\), column 'score': must",
            )
            for score in ("5.01", "-0.1", "high")
        ),
        (".csv", GOOD_STSB + STSB % (1, " ", "B"), r"row 2 .*'sentence1': must not be empty"),
        (".csv", GOOD_STSB + "a\tb\n", r"line 2: must have at least 7 tab separated .*, got 2"),
        (".csv", "\n\r\n", r"x\.csv: has no rows"),
        (".csv", GOOD_STSB.encode() + b"\xff\n", r"x\.csv, line 2, byte .*: not valid UTF-8"),
    ],
    load_nli: [
        (".tsv", NLI + "A\tB\tentails\n", "'label': must be one of entailment, .*got 'entails'"),
        (".tsv", NLI + "A\t\tneutral\n", "column 'hypothesis': must not be empty"),
        (".tsv", NLI + "A\tB\t-\n", "none of the 1 rows has a gold label"),
    ],
    load_triplets: [
        (".tsv", TRIPLETS + "A\t\tC\n", r"row 1 \(line 2\), column 'positive': must not be empty"),
        (".tsv", TRIPLETS + "A\tA\tC\n", "needs three different texts"),
    ],
    load_rewordings: [
        (".csv", REWORDINGS + "x,y,g,c\nx,y,g,c\n", r"row 2 \(line 3\), .*once, got 'c' again"),
        (".csv", REWORDINGS + "x,y,g,c\nx,y,g,d\nx,y,h,e\n", r"row 3 .*two or more.*1 of 'h'"),
        (".csv", REWORDINGS + "x,y,,c\n", r"row 1 .*'condition_group': must not be empty"),
    ],
    load_applicability: [
        *(
            (".csv", f"{APPLICABILITY}x,y,d,{label}\n", r"row 2 \(line 3\), column 'label'")
            for label in ("", "0", "6", "yes", "nan")
        ),
        (".csv", APPLICABILITY, "got 0 and 1. 'condsim build weak --absent'"),
    ],
    load_written: [
        (".txt", "d ||| A ||| B\n", "line 1: must be .*condition = label"),
        (".txt", "d ||| A ||| ||| c = 1\n", "no part empty"),
        (".txt", WRITTEN + "c = 1 ;\n", "no part empty"),
        (".txt", WRITTEN + "c = d = 1\n", "each condition once"),
        (".txt", WRITTEN + "c = 6\n", "condition 'c': the label: must be a number from 1 to 5"),
        (".txt", WRITTEN + "c = 1 ; c = 2\n", "each condition once"),
        (".txt", f"{WRITTEN}c = 1\n{WRITTEN}e = 1\n", "line 2: .* also at .*line 1"),
        (".txt", "\n\n", "has no rows"),
    ],
    iter_criteria: [
        (".csv", "text,topic\n,food\n", "row 1 .*'text': must not be empty"),
        (".csv", "body,topic\nSoup,food\n", "column 'text' is missing"),
        (".jsonl", '{"text": "A", "attributes": ["b"]}\n', "'attributes': must be an object"),
        (".jsonl", '{"text": "A", "attributes": {"": "b"}}\n', "none of them empty"),
        (".jsonl", '{"text": "A", "attributes": {"b": {"c": 1}}}\n', "value of 'b' must be"),
        (".jsonl", '{"text1": "A", "text2": "B", "labels": {"b": 5}}\n', "'b' must be .* got 5"),
    ],
    held_out_texts: [
        (".sha256", f"{'0' * 64}\n{'0' * 63}g\n", "line 2: must be a SHA-256 of 64 hexadecimal"),
        (".csv", "premise,hypothesis\na,b\n", "a column sentence1.*found 'premise', 'hypothesis'"),
    ],
    load_task: [
        (".csv", "", "is empty"),
        (".csv", "sentence1,sentence2\nA,B\n", "column 'condition' is missing"),
        (".csv", "sentence1,sentence2,label,score\nA,B,4,1\n", "column 'condition' is missing"),
        (".csv", GOOD_STSB + STSB % ("six", "A", "B"), r"\(line 2\), column 'score'"),
        (".tsv", NLI + "A\tB\tneutral\n", "contains classes of NLI.*objective 'softmax'"),
        (".tsv", TRIPLETS + "A\tB\tC\n", "contains triplets.*objective 'triplet'"),
    ],
}


@pytest.mark.parametrize(
    ("load", "suffix", "content", "message"),
    [(load, *row) for load, rows in BAD_ROWS.items() for row in rows],
)
def test_bad_row_is_refused_with_its_place(write, load, suffix, content, message):
    path = write(f"x{suffix}", content)
    with pytest.raises(InputError, match=message):
        list(load([path] if load is held_out_texts else path))
