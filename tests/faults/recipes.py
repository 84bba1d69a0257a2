"""Recipes and servers that are hostile or broken, and damaged stores of answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.faults.harness import Case, paired
from tests.faults.reading import PAIRS

_TRAIN = "condsim train r.yaml --output run"
_DEEP = "[" * 100_000
_LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
_RECIPES = {
    "a date": "name: 2026-99-99\n",
    "an integer of 5000 digits": f"epochs: {'9' * 5000}\n",
    "an infinite number": "name: x\nlearning_rate: .inf\n",
    "nesting": f"name: {_DEEP}",
    "nesting in blocks": "".join(" " * depth + "a:\n" for depth in range(1500)),
    "a bomb in a value": f"{_LAUGHS}name: *i\n",
    "a bomb in a key": f"{_LAUGHS}? *i\n: x\n",
    "a recursive list": "name: &a [*a]\n",
    "10 MB of text": f"epochs: {'x' * 10_000_000}\n",
    "an object of Python": "name: !!python/object/apply:os.system ['touch evil']\n",
    "a list": "- name\n",
    "nothing": "",
    "NUL": "name: a\0b\n",
    "no UTF-8": b"name: \xff\xfe\n",
    "two documents": "name: a\n---\nname: b\n",
    "binary": "name: !!binary notbase64!\n",
    "an unknown key": "epoch: 1\n",
    "a text with an escape": 'name: "\\e[31mred"\n',
}


def recipes() -> Iterator[Case]:
    """What YAML can hold, in each command that reads a recipe."""
    commands = {
        "train": _TRAIN,
        "sweep": "condsim sweep r.yaml --output sw --dry-run",
        "contexts": "condsim contexts run r.yaml --output run --until corpus",
        "settings": "condsim evaluate --data p.csv --model r.yaml --resamples 10",
    }
    for (name, text), (command, line) in paired(_RECIPES.items(), commands.items()):
        yield Case(
            f"recipe/{command} {name}",
            line,
            files={"r.yaml": text, "p.csv": PAIRS},
            says=r"r\.yaml",
            never="\x1b",
        )
    for name, value in {"5000 digits": "9" * 5000, "nesting": "[" * 500}.items():
        yield Case(f"set/{name}", f"{_TRAIN} --set 'epochs={value}'", files={"r.yaml": "name: x\n"})


_SERVER = """
import json, os, sys, time, zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
GOOD = {"choices": [{"message": {"role": "assistant", "content": "3"}, "finish_reason": "stop"}]}
class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self): self.do(b"{}") if WHERE != "models" else self.misbehave()
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.misbehave() if WHERE == "answer" else self.do(json.dumps(GOOD).encode())
    def do(self, body, status=200, **headers):
        self.send_response(status)
        headers.setdefault("Content_Length", str(len(body)))
        for name, value in headers.items(): self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
    def misbehave(self):
        try: exec(HOW, {**globals(), 'self': self})
        except OSError: pass
WHERE, HOW = sys.argv[1:]
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
server.handle_error = lambda *_: None  # callers may hang up
with open("url.part", "w") as file: file.write(f"http://127.0.0.1:{server.server_port}/v1")
os.rename("url.part", "url")
server.serve_forever()
"""
_SAID = "GOOD['choices'][0]['message']['content']"
_KEY = "sk-0123456789abcdef"
_DRIP = "[(self.wfile.write(b' '), self.wfile.flush(), time.sleep(.2)) for _ in range(1000)]"
# What a server does when it is asked for an answer or for its models, in turn.
_ANSWERS = {
    "an unknown packing": "self.do(b'x', Content_Encoding='zstd')",
    "a drip": f"self.do(b'', Content_Length='100000'); {_DRIP}",
    "a drip of headers": f"self.wfile.write(b'HTTP/1.1 200 OK\\r\\nX: '); {_DRIP}",
    "nested JSON": "self.do(b'{\"choices\":' + b'[' * 10**6)",
    "6000 digits": "self.do(b'{\"choices\": ' + b'9' * 6000 + b'}')",
    "nothing": "self.do(b'')",
    "a list": "self.do(b'[1]')",
    "no choices": "self.do(b'{\"choices\": []}')",
    "an empty message": 'self.do(b\'{"choices": [{"message": null}]}\')',
    "not UTF-8": "self.do(b'\\xff\\xfe\\x00')",
    "the key in a refusal": "self.do(json.dumps({'error': {'message': "
    "self.headers['Authorization']}}).encode(), 401)",
    "escapes in a refusal": "self.do(b'\\x1b[31mred', 400)",
}
_REDIRECTS = {
    "itself": "self.do(b'', 307, Location='/v1/chat/completions')",
    "a file": "self.do(b'', 307, Location='file:///etc/passwd')",
}
_UNUSUAL_ANSWERS = {
    "10**30 tokens": "GOOD['usage'] = {'prompt_tokens': 10**30, 'completion_tokens': -5}",
    "the key": f"{_SAID} = '3 ' + self.headers['Authorization']",
    "half a surrogate": f"{_SAID} = '3 \\ud800'",
    "a NUL and escapes": f"{_SAID} = '\\x003\\x1b[31m'",
    "a list of parts": f"{_SAID} = [{{'text': '3'}}, 5, None]",
}
_ASK = (
    "condsim prompt --model m --data p.csv --base-url $(cat url) --answers a.sqlite "
    "--predictions pred.csv --json rep.json --save s.yaml --resamples 10 --retries 0 --timeout 3"
)
_WRITES = ("a.sqlite", "a.sqlite-wal", "a.sqlite-shm", "pred.csv", "rep.json", "s.yaml", "url")


def _no_key(folder: Path) -> None:
    for path in folder.iterdir():
        assert _KEY.encode() not in path.read_bytes(), f"{path.name} holds the key"


def _asked(name: str, where: str, how: str, *, then: str = _ASK, **expected: object) -> Case:
    return Case(
        f"prompt/{name}",
        f'python server.py {where} "$HOW" & p=$!; for i in $(seq 200); do [ -e url ] && break; '
        f"sleep .05; done; {then}; s=$?; kill $p; exit $s",
        files={"server.py": _SERVER, "p.csv": PAIRS},
        writes=_WRITES,
        env={"HOW": how, "OPENAI_API_KEY": _KEY},
        never=f"{_KEY}|\x1b",
        check=_no_key,
        **expected,  # type: ignore[arg-type]
    )


def servers() -> Iterator[Case]:
    """Servers that answer too much, too slowly, what is no answer, or what they must not."""
    for (name, how), (where, status) in paired(
        _ANSWERS.items(), (("answer", (2,)), ("models", (0, 2))), commands_per_fault=1
    ):
        yield _asked(f"{where}, {name}", where, how, status=status)
    for name, how in _REDIRECTS.items():
        yield _asked(f"redirect to {name}", "answer", how)
    for name, change in _UNUSUAL_ANSWERS.items():
        how = change + "; self.do(json.dumps(GOOD).encode())"
        yield _asked(f"answers {name}", "answer", how, status=(0, 2))


_STORE = {
    "pages": "b = bytearray(open('a.sqlite','rb').read()); b[4096:] = b'\\xff' * (len(b) - 4096); "
    "open('a.sqlite','wb').write(b)",
    "header": "open('a.sqlite','r+b').write(b'x' * 100)",
    "deep probabilities": "run('update answers set probabilities=?', ('['*100000,))",
    "a blob": "run('update answers set text=?', (b'\\xff',))",
    "no column": "run('alter table answers drop column text')",
    "another version": "run('pragma user_version = 99')",
}


def stores() -> Iterator[Case]:
    """Stores of answers that are damaged."""
    head = (
        "import sqlite3\n"
        "def run(*c):\n    d = sqlite3.connect('a.sqlite'); d.execute(*c); d.commit(); d.close()\n"
        "run('pragma wal_checkpoint(truncate)')\n"
    )
    twice = f'{_ASK} >first 2>&1; rm -f pred.csv; python -c "$DAMAGE"; {_ASK}'
    for name, code in _STORE.items():
        case = _asked(f"store {name}", "none", "", then=twice, status=(0, 2))
        env = {**case.env, "DAMAGE": head + code}
        yield replace(case, env=env, writes=(*_WRITES, "first"))


def places() -> Iterator[Case]:
    """Addresses and stores that cannot be, found before anything is asked."""
    ask = "condsim prompt --model m --data p.csv --resamples 10 --retries 0"
    yield Case(
        "prompt/an address with a tab",
        ask + " --answers a.sqlite --base-url $'http://127.0.0.1\\t:9/v1'",
        says="URL",
        files={"p.csv": PAIRS},
    )
    yield Case(
        "contexts/a vocabulary of 10**12",
        "condsim contexts run r.yaml --output run --until coherence",
        says="size",
        files={"r.yaml": "name: x\ninputs: [d.txt]\nvocabulary: {size: 1000000000000}\n"},
    )
    yield Case(
        "prompt/answers under a file",
        ask + " --answers p.csv/a --base-url http://127.0.0.1:9/v1",
        says="Cannot write",
        files={"p.csv": PAIRS},
    )


CASES = [*recipes(), *servers(), *stores(), *places()]
