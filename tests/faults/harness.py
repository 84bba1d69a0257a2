"""Run commands as a user would and look at what they did to the files around them.

A command without shell syntax runs in a fork of one small process that has the imports done; any
other in a shell, started from there too: Linux counts the memory of whoever starts a process.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import resource
import shlex
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import TypeVar

_SHELL = re.compile(r"[|&;<>$`*?~\n(){}]|\bmkfifo\b")
_SECONDS = 45
_MEMORY = 1500  # MB
_LONGEST = 4000  # characters of a message
_SLEEP = 0.005
Fault = TypeVar("Fault")
Command = TypeVar("Command")


@dataclass(frozen=True)
class Case:
    """A command and what must hold.

    Attributes:
        name: ``family/fault``.
        run: The command line; ``condsim`` is the one under test.
        status: Exit statuses that are right.
        says: Pattern that stderr must contain.
        never: Pattern that neither stream may contain.
        files: Files to write first, by name; callables write them by themselves.
        writes: Names that the command may make or change.
        check: Looks at the folder in the end.
        env: Environment variables.
        memory: The most that a process may take, MB.
        lines: The most lines on stderr where the status is 2.
    """

    name: str
    run: str
    status: tuple[int, ...] = (2,)
    says: str = ""
    never: str = ""
    files: Mapping[str, bytes | str | Callable[[Path], object]] = field(default_factory=dict)
    writes: tuple[str, ...] = ()
    check: Callable[[Path], object] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    memory: int = _MEMORY
    lines: int = 1


@dataclass(frozen=True)
class Outcome:
    """Result of a command; no status if it was stopped at the time limit."""

    status: int | None
    out: str
    err: str
    megabytes: float


def paired(
    faults: Iterable[Fault], commands: Iterable[Command], *, commands_per_fault: int = 2
) -> Iterator[tuple[Fault, Command]]:
    """Pair each fault with a few commands, taken in turn, in place of the whole product."""
    turns = cycle(commands)
    for fault in faults:
        for command in islice(turns, commands_per_fault):
            yield fault, command


class Zygote:
    """A process with the imports of the commands done, which forks once for each command."""

    def __init__(self, environment: Mapping[str, str], *modules: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(environment),
        )

    def run(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> tuple[int | None, float]:
        """Run a command; return its exit status and its peak of memory in MB."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"arguments": list(arguments), "folder": str(folder), "env": dict(environment)}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        status, megabytes = json.loads(self._process.stdout.readline())
        return status, megabytes

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()


def run_case(case: Case, folder: Path, zygote: Zygote) -> Outcome:
    """Run the command of a case in a folder."""
    streams = folder.parent / f"{folder.name}.out", folder.parent / f"{folder.name}.err"
    environment = {"CASE_OUT": str(streams[0]), "CASE_ERR": str(streams[1]), **case.env}
    if case.run.startswith("condsim ") and not _SHELL.search(case.run):
        arguments = shlex.split(case.run)
    else:
        environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        arguments = ["bash", "-c", case.run]
    status, megabytes = zygote.run(arguments, folder, environment)
    out, err = (path.read_bytes().decode("utf-8", "replace") for path in streams)
    return Outcome(status, out, err, megabytes)


def _wait(pid: int) -> tuple[int | None, float]:
    """Wait for a process, at most until the time limit, and kill the rest of its group."""
    end = time.monotonic() + _SECONDS
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024
        if time.monotonic() > end:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            _, _, usage = os.wait4(pid, 0)
            return None, usage.ru_maxrss / 1024
        time.sleep(_SLEEP)


def faults_of(case: Case, outcome: Outcome, before: Mapping[str, str], folder: Path) -> list[str]:
    """List what did not hold."""
    faults = [*_of_process(case, outcome), *_of_streams(case, outcome.out, outcome.err)]
    if outcome.status == 2:
        lines = [line for line in outcome.err.splitlines() if line.strip()]
        # How a file was read is no error, and helps to see why the rest failed.
        lines = [line for line in lines if ": read with text in " not in line]
        if len(lines) > case.lines:
            faults.append(f"{len(lines)} lines on stderr")
    faults += _of_files(case, before, snapshot(folder))
    if not faults and case.check is not None:
        try:
            case.check(folder)
        except AssertionError as error:
            faults.append(f"check: {error}")
    return faults


def _of_process(case: Case, outcome: Outcome) -> Iterator[str]:
    if outcome.status is None:
        yield f"hang: not done after {_SECONDS} s"
    elif outcome.status not in case.status:
        yield f"exit status {outcome.status}, not {case.status}"
    if outcome.megabytes > case.memory:
        yield f"{outcome.megabytes:.0f} MB of memory"


def _of_streams(case: Case, out: str, err: str) -> Iterator[str]:
    if "Traceback" in err or "Traceback" in out:
        yield "a traceback"
    if case.says and not re.search(case.says, err):
        yield f"stderr lacks /{case.says}/"
    if case.never and (hit := re.search(case.never, err + out)):
        yield f"a stream has {hit.group()!r}"
    if len(err) > _LONGEST:
        yield f"{len(err)} characters on stderr"


def _of_files(case: Case, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name, state in before.items():
        if name.split("/")[0] not in case.writes and after.get(name) != state:
            yield f"{name} is not what it was"
    for name in after.keys() - before.keys():
        lock = re.fullmatch(r"(.+)\.[0-9a-f]{8}\.lock", name)
        own = (lock[1] if lock else name).split("/")[0]
        if own not in case.writes or name.endswith(".partial"):
            yield f"{name} was left"


def snapshot(folder: Path) -> dict[str, str]:
    """Describe the kind, mode and content of each file below a folder."""
    files = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        state = f"{stat.filemode(mode)}"
        if stat.S_ISLNK(mode):
            state += str(path.readlink())
        elif stat.S_ISREG(mode) and path.stat().st_size < 50_000_000:
            state += hashlib.sha256(path.read_bytes()).hexdigest()
        files[os.fsencode(path.relative_to(folder)).decode("utf-8", "backslashreplace")] = state
    return files


def serve() -> None:
    """Answer requests of `Zygote`: one fork for each command."""
    import condsim.cli.main as commands

    _ = commands.app  # imports all commands
    import numpy  # noqa: F401
    import onnxruntime  # noqa: F401
    import tokenizers  # noqa: F401

    for module in sys.argv[1:]:
        importlib.import_module(module)
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.setsid()
            _child(request)
        sys.stdout.write(json.dumps(_wait(pid)) + "\n")
        sys.stdout.flush()


def _child(request: dict[str, object]) -> None:
    import condsim.cli.main as commands

    os.chdir(str(request["folder"]))
    environment = dict(request["env"])  # type: ignore[call-overload]
    os.environ.update(environment)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_RDONLY)
    streams = [
        os.open(environment[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for name in ("CASE_OUT", "CASE_ERR")
    ]
    for number, descriptor in enumerate((null, *streams)):
        os.dup2(descriptor, number)
    status = 1
    try:
        arguments = [str(word) for word in request["arguments"]]  # type: ignore[attr-defined]
        if arguments[0] != "condsim":
            os.execvp(arguments[0], arguments)
        sys.argv = arguments
        commands.run(arguments[1:])
        status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()
