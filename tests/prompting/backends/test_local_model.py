import shutil
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from condsim.errors import MissingExtraError, ModelError  # noqa: E402
from condsim.prompting import local_model  # noqa: E402
from condsim.prompting.local_model import load_weights, open_checkpoint  # noqa: E402

CPU = torch.device("cpu")


def test_local_backend_needs_no_sentence_transformers():
    code = (
        "import sys; sys.modules['sentence_transformers'] = None\n"
        "from condsim.prompting.local import LocalBackend"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("model", ["./none", "~/none", "a/b/c", Path("none")])
def test_open_checkpoint_missing_folder_says_so(model):
    with pytest.raises(ModelError, match="There is no model folder"):
        open_checkpoint(model)


def test_open_checkpoint_unknown_hub_name_is_one_line(monkeypatch):
    def no_network(self, name, timeout):
        assert timeout <= 10
        raise OSError("404 Client Error.\nSecond line")

    monkeypatch.setattr(local_model.HfApi, "model_info", no_network)
    with pytest.raises(ModelError, match="Could not open 'nobody/nothing': 404") as caught:
        open_checkpoint("nobody/nothing")
    assert "\n" not in str(caught.value)


def test_open_checkpoint_empty_folder_says_so(tmp_path):
    with pytest.raises(ModelError, match="The folder must hold a transformers model"):
        open_checkpoint(tmp_path)


def test_open_checkpoint_encoder_only_model_is_refused(tiny_backbone):
    with pytest.raises(ModelError, match=r"must be a model that generates text.* Got BertModel"):
        open_checkpoint(tiny_backbone)


def test_open_checkpoint_encoder_of_t5_is_refused(tiny_t5, tmp_path):
    model = transformers.T5EncoderModel.from_pretrained(tiny_t5)
    model.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"must be a model that generates text.* Got T5Encoder"):
        open_checkpoint(tmp_path)


def test_open_checkpoint_weights_as_pickle_are_refused(tiny_gpt2, tmp_path):
    copy = tmp_path / "pickled"
    shutil.copytree(tiny_gpt2, copy)
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"safetensors format.*Got pytorch_model\.bin instead"):
        open_checkpoint(copy)


def test_open_checkpoint_two_gguf_files_must_be_told_apart(tmp_path):
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(ModelError, match=r"must hold one GGUF file\. Got a\.gguf, b\.gguf; name"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("is_file", [True, False])
def test_open_checkpoint_gguf_without_its_library_names_the_extra(is_file, tmp_path, monkeypatch):
    file = tmp_path / "a.gguf"
    file.write_bytes(b"GGUF")
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(MissingExtraError, match=r"condsim\[llm\]"):
        open_checkpoint(file if is_file else tmp_path)


def test_open_checkpoint_damaged_gguf_is_one_line(tmp_path):
    pytest.importorskip("gguf")
    file = tmp_path / "a.gguf"
    file.write_bytes(b"GGUF")
    with pytest.raises(ModelError, match=r"Could not open 'a\.gguf': ") as caught:
        open_checkpoint(file)
    assert "\n" not in str(caught.value)


def test_open_checkpoint_safetensors_go_before_gguf(tiny_gpt2, tmp_path):
    copy = tmp_path / "both"
    shutil.copytree(tiny_gpt2, copy)
    (copy / "a.gguf").write_bytes(b"GGUF")
    assert open_checkpoint(copy).gguf is None


@pytest.mark.parametrize("kind", ["tiny_gpt2", "tiny_t5"])
def test_open_checkpoint_missing_tokenizer_is_refused(kind, request, tmp_path):
    copy = tmp_path / "mute"
    shutil.copytree(request.getfixturevalue(kind), copy)
    for path in copy.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(ModelError, match="'mute' has no tokenizer"):
        open_checkpoint(copy)


def test_open_checkpoint_without_padding_token_takes_the_end_token(tiny_gpt2):
    tokenizer = open_checkpoint(tiny_gpt2).tokenizer
    assert tokenizer.pad_token_id == tokenizer.eos_token_id


def test_load_weights_missing_head_is_refused(tiny_gpt2, tmp_path):
    copy = tmp_path / "headless"
    shutil.copytree(tiny_gpt2, copy)
    config = transformers.GPT2Config.from_pretrained(tiny_gpt2, tie_word_embeddings=False)
    config.save_pretrained(copy)
    with pytest.raises(ModelError, match=r"1 are missing, such as lm_head\.weight"):
        load_weights(open_checkpoint(copy), device=CPU, max_new_tokens=20)


def test_load_weights_keeps_only_special_tokens_of_the_generation_config(tiny_t5):
    model = load_weights(open_checkpoint(tiny_t5), device=CPU, max_new_tokens=7)
    found = model.generation_config
    assert (found.eos_token_id, found.pad_token_id, found.decoder_start_token_id) == ([1], 0, 0)
    assert (found.max_new_tokens, found.do_sample, found.num_beams) == (7, False, 1)
    assert not model.training


@pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16, torch.float32])
def test_dtype_on_is_that_of_the_checkpoint_where_the_device_is_fast(
    tiny_gpt2, tmp_path, monkeypatch, stored
):
    copy = tmp_path / "half"
    transformers.GPT2LMHeadModel.from_pretrained(tiny_gpt2).to(stored).save_pretrained(copy)
    shutil.copy(tiny_gpt2 / "tokenizer.json", copy)
    shutil.copy(tiny_gpt2 / "tokenizer_config.json", copy)
    checkpoint = open_checkpoint(copy)
    assert checkpoint.dtype_on(torch.device("cuda")) == stored
    for native in (True, False):
        monkeypatch.setattr(
            "condsim.prompting.local_model.uses_bfloat16", {"auto": native}.__getitem__
        )
        fast = native and stored == torch.bfloat16
        assert checkpoint.dtype_on(CPU) == (stored if fast else torch.float32)
    model = load_weights(checkpoint, device=CPU, max_new_tokens=20)
    assert model.dtype == torch.float32


def test_revision_is_the_commit_of_a_hub_model(tiny_gpt2):
    local = open_checkpoint(tiny_gpt2)
    hub = local_model.Checkpoint("a/b", "a/b", "0123abcd", local.config, local.tokenizer)
    assert hub.revision() == "0123abcd"


def test_quiet_restores_verbosity_and_bars():
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    with local_model.quiet():
        assert logging.get_verbosity() == logging.ERROR
        assert not logging.is_progress_bar_enabled()
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
