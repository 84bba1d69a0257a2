"""Folders of models that are damaged, and Python calls with what is no text."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.faults.harness import Case
from tests.faults.reading import PAIRS

import condsim

DEFAULT = Path(condsim.__file__).parent / "assets" / "default"
_SCORE = "condsim score --model m --file p.csv --output o.csv"


def copy_with(change: Callable[[Path], object]) -> Callable[[Path], None]:
    """Makes a copy of the default model in which one thing is changed."""

    def make(folder: Path) -> None:
        folder.mkdir()
        for file in DEFAULT.iterdir():
            if file.name == "model.onnx":
                (folder / file.name).symlink_to(file)
            else:
                shutil.copy(file, folder)
        change(folder)

    return make


def _settings(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "condsim.json"
        content = json.loads(path.read_text(encoding="utf-8"))
        for key, value in changes.items():
            if value is ...:
                content.pop(key, None)
            else:
                content[key] = value
        path.write_text(json.dumps(content), encoding="utf-8")

    return change


def _text(name: str, text: str | bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)

    return change


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _raw(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "condsim.json"
        content = json.loads(path.read_text(encoding="utf-8"))
        content["calibration"] |= changes
        path.write_text(json.dumps(content), encoding="utf-8")

    return change


def _huge(folder: Path) -> None:
    path = folder / "condsim.json"
    text = path.read_text(encoding="utf-8").replace('"raw": [', '"raw": [-1' + "0" * 400 + ",", 1)
    path.write_text(text, encoding="utf-8")


def _tokenizer(folder: Path) -> None:
    """The tokenizer of a model with other tokens."""
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = content["model"]["vocab"]
    content["model"]["vocab"] = {word: 10 * place for word, place in vocabulary.items()}
    path.write_text(json.dumps(content), encoding="utf-8")


def _nan(folder: Path) -> None:
    import numpy as np
    import onnx
    from onnx import numpy_helper

    model = onnx.load(str(folder / "model.onnx"))
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor) * np.float32("nan")
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    (folder / "model.onnx").unlink()
    onnx.save(model, str(folder / "model.onnx"))


def folders() -> Iterator[Case]:
    """Damaged models: refused before anything is written, in a line that names the file."""
    deep = "[" * 100_000
    damages: dict[str, tuple[Callable[[Path], object], str]] = {
        "empty settings": (_text("condsim.json", ""), "condsim.json"),
        "settings of an array": (_text("condsim.json", "[]"), "condsim.json"),
        "settings deep": (_text("condsim.json", deep), "condsim.json"),
        "settings not UTF-8": (_text("condsim.json", b"\xff\xfe"), "condsim.json"),
        "no settings": (_without("condsim.json"), "condsim.json|model"),
        "format 99": (_settings(format=99), "format"),
        "kind unknown": (_settings(kind="x"), "kind"),
        "kind a list": (_settings(kind=["bi-encoder"]), "kind"),
        "a cross-encoder by its settings": (_settings(kind="cross-encoder"), "m"),
        "order unknown": (_settings(order="x"), "order"),
        "dimension wrong": (_settings(dimension=7), "dimension"),
        "dimension 0": (_settings(dimension=0), "dimension"),
        "dimension text": (_settings(dimension="384"), "dimension"),
        "max_seq_length 0": (_settings(max_seq_length=0), "max_seq_length"),
        "max_seq_length of 31 digits": (_settings(max_seq_length=10**30), "max_seq_length"),
        "calibration a number": (_settings(calibration=5), "calibration"),
        "calibration of digits": (_raw(raw=["1", "2"], score=["0", "1"]), "calibration"),
        "calibration falling": (_raw(raw=[1.0, -1.0], score=[0.0, 1.0]), "calibration"),
        "calibration uneven": (_raw(raw=[0.0, 0.5, 1.0], score=[0.0, 1.0]), "calibration"),
        "calibration of one": (_raw(raw=[0.0], score=[1.0]), "calibration"),
        "calibration NaN": (_raw(raw=[float("nan"), 1.0], score=[0.0, 1.0]), "calibration"),
        "calibration huge": (_huge, "calibration"),
        "no graph": (_without("model.onnx"), "model.onnx|m"),
        "graph of text": (_text("model.onnx", "no graph"), "model.onnx|m"),
        "graph cut": (_text("model.onnx", (DEFAULT / "model.onnx").read_bytes()[:9000]), "m"),
        "graph of NaN": (_nan, "finite|NaN|damaged"),
        "no tokenizer": (_without("tokenizer.json"), "tokenizer"),
        "tokenizer of text": (_text("tokenizer.json", "x"), "tokenizer"),
        "tokenizer of an object": (_text("tokenizer.json", "{}"), "tokenizer"),
        "tokenizer deep": (_text("tokenizer.json", deep), "tokenizer"),
        "tokenizer of another model": (_tokenizer, "tokenizer"),
    }
    for name, (change, says) in damages.items():
        yield Case(
            f"model/{name}",
            _SCORE,
            says=says,
            files={"p.csv": PAIRS, "m": copy_with(change)},
            writes=("m",),
        )
    heads = {
        "head of text": "x",
        "head of an array": "[]",
        "head deep": deep,
        "head huge": '{"format": 1, "weights": [' + "9" * 5000 + "]}",
    }
    for name, text in heads.items():
        yield Case(
            f"model/{name}",
            "condsim score --model m a b c",
            says="applicability.json",
            files={"m": copy_with(_text("applicability.json", text))},
            writes=("m",),
        )
    yield Case(
        "model/max_seq_length beyond the model",
        'condsim score --model m "$(yes "a man" 2>/dev/null | head -500 | tr "\\n" " ")" b c',
        says="max_seq_length|damaged|token|long",
        files={"m": copy_with(_settings(max_seq_length=5000))},
        writes=("m",),
    )
    for name, model in {
        "a file": "p.csv",
        "an empty folder": "empty",
        "a name with a newline": "$'a\\nb'",
        "a very long name": "x" * 5000,
        "a hub name": "nobody/nothing-at-all",
        "parent folders": "../../../../../../etc",
    }.items():
        yield Case(
            f"model/{name}",
            f"HF_HUB_OFFLINE=1 condsim score --model {model} --file p.csv --output o.csv",
            files={"p.csv": PAIRS, "empty": lambda path: path.mkdir()},
            lines=1,
        )


def _python(code: str) -> str:
    """A script that ends with status 2 and one line where condsim raises an error of its own."""
    return f"""
import sys
import numpy as np
import condsim
from condsim.errors import CondSimError
try:
    model = condsim.load()
    {code}
except CondSimError as error:
    sys.stderr.write(f"error: {{error}}\\n")
    sys.exit(2)
"""


def python() -> Iterator[Case]:
    """The Python API: what is no text is an error of condsim, in a line that says what to pass."""
    texts = {
        "None": "None",
        "a number": "5",
        "bytes": "b'a'",
        "a list of None": "[None]",
        "a list of numbers": "[1, 2]",
        "a dict": "{'a': 'b'}",
        "a set": "{'a', 'b'}",
        "a generator": "(word for word in ['a', 'b'])",
        "a list of lists": "[['a'], ['b']]",
        "a 0-d array": "np.array('a')",
        "a 2-d array": "np.array([['a', 'b']])",
        "an array of floats": "np.zeros(3)",
        "half a surrogate": "'\\ud800'",
        "half a surrogate in a list": "['a', '\\ud800']",
        "empty": "''",
        "blank": "'  '",
        "a huge object": "[10 ** 3000]",
        "a huge text of no kind": "object()",
    }
    for name, value in texts.items():
        for call in ("model.score({}, 'b', 'c')", "model.encode({}, 'c')"):
            where = "encode" if "encode" in call else "score"
            yield Case(
                f"python/{where} {name}",
                "python case.py",
                files={"case.py": _python(call.format(value))},
            )
    calls = {
        "no condition in applicability": "model.applicability('a', 'b', None)",
        "an empty condition": "model.score('a', 'b', '')",
        "columns of two lengths": "model.score(['a'], ['b', 'c'], 'd')",
        "a scale that is none": "model.score('a', 'b', 'c', scale='x')",
        "a scale of None": "model.score('a', 'b', 'c', scale=None)",
        "load a number": "condsim.load(5)",
        "load bytes": "condsim.load(b'x')",
        "load nothing": "condsim.load('')",
        "load a very long name": "condsim.load('x' * 100_000)",
        "load a name with NUL": "condsim.load('a\\0b')",
        "threads of text": "from condsim.model import OnnxScorer, DEFAULT_FOLDER; "
        "OnnxScorer(DEFAULT_FOLDER, threads='x')",
        "rows of no path": "from condsim.data.csts import iter_csts; list(iter_csts(5))",
        "a report of deep JSON": "import pathlib; pathlib.Path('r.json').write_text('[' * 100000); "
        "from condsim.evaluation import Report; Report.from_json('r.json')",
        "same without conditions": "model.same('a', 'b', [], at_least=0.5)",
        "same at a threshold of 2": "model.same('a', 'b', ['c'], at_least=2)",
        "explain nothing": "model.explain('', 'b', 'c')",
        "explain samples 0": "model.explain('a', 'b', 'c', samples=0)",
    }
    for name, call in calls.items():
        yield Case(
            f"python/{name}",
            "python case.py",
            files={"case.py": _python(call)},
            writes=("r.json",),
        )
    right = {
        "a deque": "from collections import deque\n"
        "    assert model.score(deque('ab'), 'b', 'c').shape == (2,)",
        "a tuple": "assert model.score(('a', 'b'), ('c', 'd'), ('e', 'f')).shape == (2,)",
        "a NumPy column": "assert model.score(np.array(['a', 'b']), 'c', 'd').shape == (2,)",
        "an object column": "column = np.array(['a'], dtype=object)\n"
        "    assert model.score(column, 'c', 'd').shape == (1,)",
        "no rows": "assert model.score([], [], 'c').shape == (0,)",
        "a copy": "import copy; assert copy.copy(model).score('a', 'b', 'c') >= 0",
        "text of all kinds": "odd = '\\u202e\\x00\\x1b[31m'\n"
        "    assert 0 <= model.score(odd, '\\U0001f600', 'c') <= 1",
        "eight threads": "from concurrent.futures import ThreadPoolExecutor as T\n"
        "    one = model.score('a dog', 'a cat', 'the animal')\n"
        "    with T(8) as pool:\n"
        "        again = lambda n: model.score('a dog', 'a cat', 'the animal')\n"
        "        found = list(pool.map(again, range(40)))\n"
        "    assert found == [one] * 40",
        "a fork": "import multiprocessing as m\n"
        "    one = model.score('a dog', 'a cat', 'the animal')\n"
        "    def work(queue): queue.put(model.score('a dog', 'a cat', 'the animal'))\n"
        "    context = m.get_context('fork'); queue = context.Queue()\n"
        "    process = context.Process(target=work, args=(queue,)); process.start()\n"
        "    assert queue.get(timeout=30) == one; process.join()",
    }
    for name, call in right.items():
        yield Case(
            f"python/{name}",
            "python case.py",
            status=(0,),
            files={"case.py": _python(call)},
        )


CASES = [*folders(), *python()]
