import subprocess
import sys

import pytest

from condsim.errors import InputError
from condsim.prompting.backend import Address, base_address, environment_key
from condsim.prompting.server import ServerBackend
from condsim.prompting.settings import PromptSettings


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8000/v1",
        "http://127.0.0.1/v1",
        "http://[::1]:9/v1",
        "http://0.0.0.0:8000",
        "http://llm.localhost",
    ],
)
def test_base_address_this_machine_is_local_and_needs_no_key(monkeypatch, url):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert base_address(f" {url}/ ") == Address(url, local=True)
    assert environment_key(base_address(url)).key == "none"


@pytest.mark.parametrize(
    "url", ["https://api.openai.com/v1", "http://10.0.0.7:8000", "http://host"]
)
def test_base_address_other_machine_is_not_local(url):
    assert base_address(url) == Address(url, local=False)


def test_base_address_none_is_that_of_the_environment_or_openai(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://host/v1/")
    assert base_address(None).url == "http://host/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "host")
    with pytest.raises(InputError, match=r"^The OPENAI_BASE_URL must be an http:// or"):
        base_address(None)
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert base_address(None).url == "https://api.openai.com/v1"


@pytest.mark.parametrize(
    "url", ["localhost:8000/v1", "", "ftp://host", "http://", "http://host:99999", "http://[::1"]
)
def test_base_address_no_web_address_is_refused(url):
    with pytest.raises(InputError, match="must be an http:// or https:// URL such as"):
        base_address(url)


@pytest.mark.parametrize(
    "url", ["http://me:secret@host/v1", "http://host?key=secret", "secret@host"]
)
def test_base_address_with_a_secret_is_refused_and_not_shown(url):
    with pytest.raises(InputError) as caught:
        base_address(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-a b", "sk-a\nb", "sk-ä"])
def test_environment_key_that_no_header_can_hold_is_refused_and_not_shown(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(InputError, match="OPENAI_API_KEY must be ASCII") as caught:
        environment_key(base_address("http://host"))
    assert "sk-" not in str(caught.value)


def test_clean_takes_the_key_out_and_makes_one_short_line():
    address = Address("http://host", local=False, key="sk-12345678")
    assert address.clean("no\n key  (sk-12345678)xsk-12345678") == "no key (***)x***"
    assert len(address.clean("word " * 200)) == 300
    assert "sk-12345678" not in repr(address)


def test_clean_short_key_is_taken_out_as_a_word_only():
    assert Address("http://host", local=False, key="x").clean("x: example") == "***: example"


def opened(**options):
    return ServerBackend(PromptSettings(**{"model": "m", "backend": "server", **options}))


@pytest.mark.parametrize(
    ("options", "said"),
    [({"model": " "}, "must have a name"), ({"base_url": "host"}, "base_url must be an http://")],
)
def test_server_backend_setting_out_of_range_is_refused(options, said):
    with pytest.raises(InputError, match=said):
        opened(**options)


def test_server_backend_identity_has_the_address_and_no_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-12345678")
    backend = opened(base_url="http://host/v1", max_new_tokens=7)
    assert backend.identity == {
        "backend": "server",
        "url": "http://host/v1",
        "model": "m",
        "max_new_tokens": "7",
    }
    assert (backend.name, backend.max_new_tokens) == ("m", 7)


def test_server_backend_count_tokens_is_an_estimate_without_a_limit():
    backend = opened(base_url="http://host/v1")
    assert backend.count_tokens("") == 0
    assert backend.count_tokens("A man throws a ball. " * 500) == 3000


@pytest.mark.parametrize("shown", ['sk-wr"ong\\back-0123456789', 'sk-wr\\"ong\\\\back-0123456789'])
def test_clean_key_is_found_as_it_is_and_as_json_writes_it(shown):
    address = Address("http://host/v1", local=False, key='sk-wr"ong\\back-0123456789')
    assert address.clean(f"bad key {shown}") == "bad key ***"


def test_address_and_server_backend_need_no_openai_until_they_ask():
    code = (
        "import sys; sys.modules |= {'openai': None, 'httpx2': None}\n"
        "from condsim.prompting.backend import Address\n"
        "from condsim.prompting.settings import PromptSettings\n"
        "from condsim.prompting.server import ServerBackend\n"
        "at = PromptSettings(model='m', backend='server', base_url='http://localhost:1/v1')\n"
        "ServerBackend(at).check()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("pip install 'condsim[llm]'\n")
    assert "needs openai" in done.stderr
