"""Run commands in forks of one process that has the imports done, and keep what they did.

Each case has a folder of its own. A command runs as ``python -m condsim`` does, by `runpy`, so
that no inner module of condsim is named here.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.golden.cases import Case, Request, Step
from tests.golden.contents import Normaliser, describe_folder, help_options

PROJECT = Path(__file__).resolve().parents[2]
STEP_LIMIT_S = {"quick": 120, "slow": 400}
_ENVIRONMENT = {
    "COLUMNS": "120",
    "LINES": "40",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "PYTHONWARNINGS": "ignore",
    "RAY_DISABLE_IMPORT_WARNING": "1",
}
# They start no threads when they are imported, so that the process can be forked.
_IMPORTED = (
    "numpy onnxruntime tokenizers pyarrow.parquet scipy.stats sklearn.linear_model sklearn.cluster "
    "sklearn.feature_extraction.text matplotlib.font_manager pydantic yaml lance_namespace "
    "sentence_transformers optuna"
).split()
_SECRETS = ("OPENAI_API_KEY", "LABEL_STUDIO_API_KEY", "HF_TOKEN")


def prepare(root: Path) -> None:
    """Set the environment, and import what commands import, so that forks start fast."""
    for name in _SECRETS:
        os.environ.pop(name, None)
    home = root / "home"
    home.mkdir()
    os.environ.update(_ENVIRONMENT, HOME=str(home), XDG_CACHE_HOME=str(home / "cache"))
    (root / "repo").symlink_to(PROJECT)
    for name in _IMPORTED:
        with contextlib.suppress(ImportError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(name)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        _run_module(["--help"])


def _run_module(words: Sequence[str]) -> None:
    sys.argv = ["condsim", *words]
    runpy.run_module("condsim", run_name="__main__", alter_sys=True)


def run_case(case: Case, root: Path) -> dict[str, Any]:
    """Run all steps of a case and describe what they wrote; called in a process of its own."""
    folder = root / case.folder
    folder.mkdir()
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
    before = {path: _stamp(path) for path in folder.rglob("*") if path.is_file()}
    normaliser = Normaliser({str(root): "{tmp}", str(PROJECT): "{repo}"})
    with _server(case, folder) as url:
        words = {"url": url}
        steps = [_step(case, step, folder, words, normaliser) for step in case.steps]
    written = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and before.get(path) != _stamp(path)
    ]
    result: dict[str, Any] = {"group": case.group, "steps": steps}
    result["files"] = describe_folder(folder, written, normaliser, case.skip)
    if case.tolerance is not None:
        result["tolerance"] = case.tolerance
    if case.python is not None:
        result["python"] = _in_child(case.python, folder, root)
    return result


def _stamp(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_mtime_ns, state.st_size


def _in_child(function: Callable[[Path], object], folder: Path, root: Path) -> object:
    result = root / f"{folder.name}.python.json"

    def body() -> None:
        os.chdir(folder)
        result.write_text(json.dumps(function(folder)), encoding="utf-8")

    status = wait_for(fork(body, err=root / f"{folder.name}.python.err"), 300)
    if status != 0:
        return {"status": status}
    return json.loads(result.read_text(encoding="utf-8"))


def _step(
    case: Case, step: Step, folder: Path, words: Mapping[str, str], normaliser: Normaliser
) -> dict[str, Any]:
    arguments = [word.replace("{url}", words["url"]) for word in step.words]
    out, err = folder.parent / f"{folder.name}.out", folder.parent / f"{folder.name}.err"
    limit = STEP_LIMIT_S[case.group]
    if step.requests:
        return _serve(step, arguments, folder, out, err, normaliser)
    pid = _start(arguments, step, folder, out, err)
    status = wait_for(pid, limit)
    shown: dict[str, Any] = {"command": " ".join(step.words), "status": status}
    text = out.read_bytes().decode("utf-8", "replace")
    if step.help:
        shown["options"] = help_options(text)
    else:
        shown["stdout"] = normaliser.text(text)
    if status != 0:
        told = [line for line in err.read_text("utf-8", "replace").splitlines() if line.strip()]
        shown["stderr"] = ("none", "one line")[len(told)] if len(told) < 2 else "more lines"
        shown["traceback"] = any(line.startswith("Traceback") for line in told)
    return shown


def _start(arguments: Sequence[str], step: Step, folder: Path, out: Path, err: Path) -> int:
    def body() -> None:
        os.chdir(folder / step.folder)
        os.environ.update(step.environment)
        _run_module(arguments)

    stdin = None if step.stdin is None else folder / step.stdin
    return fork(body, stdin=stdin, out=out, err=err)


def fork(
    body: Callable[[], None],
    *,
    stdin: Path | None = None,
    out: Path | None = None,
    err: Path | None = None,
) -> int:
    """Fork a process group that runs `body` and exits with its status; gives the process id."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.setsid()
        for number, (path, flags) in enumerate(
            ((stdin, os.O_RDONLY), (out, os.O_WRONLY), (err, os.O_WRONLY))
        ):
            making = 0 if number == 0 else os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(path or os.devnull, flags | making, 0o600), number)
        body()
        status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def wait_for(pid: int, limit_s: float) -> int | str:
    """Wait for a process; its exit status, or that it was stopped at the limit."""
    end = time.monotonic() + limit_s
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done or time.monotonic() > end:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            if not done:
                os.waitpid(pid, 0)
                return f"stopped after {limit_s} s"
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)


@contextlib.contextmanager
def _server(case: Case, folder: Path) -> Iterator[str]:
    if case.server is None:
        yield ""
        return
    url = folder.parent / f"{folder.name}.url"
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("servers.py")), case.server, str(url)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(1000):
            if url.exists() or process.poll() is not None:
                break
            time.sleep(0.01)
        yield url.read_text()
    finally:
        process.kill()
        process.wait()


def _serve(
    step: Step, arguments: Sequence[str], folder: Path, out: Path, err: Path, normaliser: Normaliser
) -> dict[str, Any]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pid = _start([*arguments, "--port", str(port)], step, folder, out, err)
    answers = []
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        for request in step.requests:
            answers.append(_ask(f"http://127.0.0.1:{port}", request, normaliser))
    finally:
        os.kill(pid, signal.SIGTERM)
    status = wait_for(pid, 30)
    return {"command": " ".join(step.words), "status": status, "answers": answers}


def _ask(base: str, request: Request, normaliser: Normaliser) -> dict[str, Any]:
    body = None if request.body is None else json.dumps(request.body).encode()
    if request.raw is not None:
        body = request.raw
    headers = {"Content-Type": "application/json", **request.headers}
    asked = urllib.request.Request(base + request.path, data=body, headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            status, kind, text = answer.status, answer.headers.get_content_type(), answer.read()
    except urllib.error.HTTPError as error:
        status, kind, text = error.code, error.headers.get_content_type(), error.read()
    shown: dict[str, Any] = {"path": request.path, "status": status, "type": kind}
    if kind == "application/json":
        shown["body"] = request.reduce(normaliser.json(json.loads(text)), status)
    return shown


def remove(root: Path) -> None:
    """Remove the folders of all cases."""
    shutil.rmtree(root, ignore_errors=True)
