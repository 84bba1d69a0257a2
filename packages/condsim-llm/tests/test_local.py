import json
import shutil
from functools import cache

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from condsim.errors import ModelError  # noqa: E402
from condsim_llm import local  # noqa: E402
from condsim_llm.backend import PromptSettings  # noqa: E402
from condsim_llm.local import (  # noqa: E402
    LocalBackend,
)

KINDS = ("tiny_t5", "tiny_gpt2", "tiny_chat_gpt2")


PROMPTS = [
    "Input: Sentence 1: " + " ".join(["A man throws a ball."] * (1 + 5 * number % 8)) + f" {number}"
    for number in range(16)
]


@pytest.fixture(params=KINDS)
def folder(request):
    return request.getfixturevalue(request.param)


def opened(folder, **options):
    return LocalBackend(PromptSettings(model=str(folder), **options))


def answers_of(backend, prompts, *, probabilities=False):
    found = dict(backend.answers(prompts, probabilities=probabilities))
    return [found[place] for place in range(len(found))]


def changed(folder, tmp_path, name, **values):
    """A copy of a model with other values in one of its JSON files."""
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    path = copy / name
    content = json.loads(path.read_text()) | values
    path.write_text(json.dumps(content))
    return copy


@cache
def plain_model(folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    auto = "AutoModelForSeq2SeqLM" if config.is_encoder_decoder else "AutoModelForCausalLM"
    return (
        getattr(transformers, auto).from_pretrained(folder).eval(),
        transformers.AutoTokenizer.from_pretrained(folder),
    )


def plain_generation(folder, prompt):
    """Scores of each step, (steps, vocabulary), and the new tokens, by transformers itself."""
    model, tokenizer = plain_model(folder)
    if tokenizer.chat_template:
        inputs = tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], add_generation_prompt=True, return_tensors="pt"
        )
    else:
        inputs = tokenizer(prompt, return_tensors="pt", verbose=False)
    inputs = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    output = model.generate(
        **inputs,
        do_sample=False,
        max_new_tokens=20,
        pad_token_id=tokenizer.pad_token_id or 0,
        return_dict_in_generate=True,
        output_logits=True,
    )
    logits = torch.stack(output.logits, dim=1)[0]
    return logits, output.sequences[0, -len(logits) :], tokenizer


def test_answers_in_batches_equal_those_of_transformers_one_by_one(folder, monkeypatch):
    monkeypatch.setattr(local, "_CPU_TOKENS_PER_BATCH", 1500)
    monkeypatch.setattr(local, "_PROMPTS_PER_WINDOW", 10)
    backend = opened(folder)
    answers = answers_of(backend, PROMPTS)
    assert len({answer.text for answer in answers}) > 5
    for prompt, answer in zip(PROMPTS, answers, strict=True):
        _, new, tokenizer = plain_generation(folder, prompt)
        assert answer.text == tokenizer.decode(new, skip_special_tokens=True)
        assert answer.new_tokens == len(new)
        assert answer.probabilities is None


def test_answers_stop_at_any_end_token_and_count_it(tiny_gpt2, tmp_path):
    whole = answers_of(opened(tiny_gpt2), PROMPTS)
    _, new, _ = plain_generation(tiny_gpt2, PROMPTS[0])
    end = new[5].item()
    ended = changed(tiny_gpt2, tmp_path, "generation_config.json", eos_token_id=[0, end])
    answers = answers_of(opened(ended), PROMPTS)
    assert answers[0].new_tokens == new.tolist().index(end) + 1
    assert whole[0].text.startswith(answers[0].text)
    assert {answer.new_tokens for answer in answers} > {20}


def test_answers_stay_greedy_and_silent_whatever_the_generation_config_says(
    folder, tmp_path, capfd
):
    sampling = changed(
        folder,
        tmp_path,
        "generation_config.json",
        do_sample=True,
        temperature=5.0,
        top_p=0.5,
        top_k=3,
        num_beams=3,
        repetition_penalty=3.0,
        max_length=7,
        min_new_tokens=3,
    )
    answers = [answers_of(opened(model), PROMPTS[:6]) for model in (folder, sampling)]
    assert answers[0] == answers[1]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_are_those_at_the_first_token_that_is_a_number(kind, request):
    folder = request.getfixturevalue(kind)
    answers = answers_of(opened(folder), PROMPTS, probabilities=True)
    place = next(place for place, answer in enumerate(answers) if answer.probabilities)
    logits, new, tokenizer = plain_generation(folder, PROMPTS[place])
    value_of = {}
    for id_ in range(len(tokenizer)):
        text = tokenizer.decode([id_]).strip()
        if text.isascii() and text.replace(".", "", 1).isdigit() and text[0] != "." != text[-1]:
            value_of[id_] = float(text)
    step = next(step for step, id_ in enumerate(new.tolist()) if id_ in value_of)
    expected = dict.fromkeys(value_of.values(), 0.0)
    for id_, value in value_of.items():
        expected[value] += logits[step].softmax(dim=-1)[id_].item()
    assert len(value_of) > len(expected) > 5  # equal numbers are added up
    assert answers[place].probabilities == pytest.approx(expected, rel=1e-4, abs=1e-7)


def test_count_tokens_is_exact_with_special_tokens_and_template(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    backend = opened(folder)
    prompt = PROMPTS[3]
    if folder.name == "tiny-chat-gpt2":
        expected = tokenizer(
            f"<|endoftext|><|user|>{prompt}<|assistant|>", add_special_tokens=False
        )["input_ids"]
        assert expected.count(tokenizer.bos_token_id) == 1
        assert tokenizer("A")["input_ids"][0] == tokenizer.bos_token_id  # would be a second one
    else:
        expected = tokenizer(prompt, verbose=False)["input_ids"]
    assert backend.count_tokens(prompt) == len(expected)
    assert answers_of(backend, [prompt])[0].prompt_tokens == len(expected)


def test_answers_t5_takes_prompts_longer_than_its_tokenizer_says(tiny_t5):
    (answer,) = answers_of(opened(tiny_t5), ["3" * 200])
    assert answer.prompt_tokens == 201  # with the end token


def test_answers_too_little_memory_halves_the_batch_and_loses_nothing(tiny_gpt2, monkeypatch):
    expected = answers_of(opened(tiny_gpt2), PROMPTS)
    backend = opened(tiny_gpt2)
    sizes = []
    generate = backend._generate

    def scarce(rows, mass):
        sizes.append(len(rows))
        if len(rows) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return generate(rows, mass)

    monkeypatch.setattr(backend, "_generate", scarce)
    assert answers_of(backend, PROMPTS) == expected
    assert sizes[0] == 16
    assert sizes[1] <= 8
    assert sum(size > 5 for size in sizes) <= 4


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer_config.json"])
def test_identity_changes_with_the_files_of_the_model(tiny_gpt2, tmp_path, name):
    copy = tmp_path / tiny_gpt2.name
    shutil.copytree(tiny_gpt2, copy)
    assert opened(copy).identity == opened(tiny_gpt2).identity
    with (copy / name).open("ab") as stream:
        stream.write(b" ")
    assert opened(copy).identity != opened(tiny_gpt2).identity


def test_check_loads_the_weights_and_count_tokens_does_not(tiny_gpt2, tmp_path):
    copy = tmp_path / "broken"
    shutil.copytree(tiny_gpt2, copy)
    (copy / "model.safetensors").write_bytes(b"not weights")
    backend = opened(copy)
    assert backend.count_tokens("A man") > 0
    with pytest.raises(ModelError, match="the weights of 'broken'"):
        backend.check()


def test_open_unknown_hub_name_is_one_line(monkeypatch):
    def no_network(self, name, timeout):
        raise OSError("404 Client Error.\nSecond line")

    monkeypatch.setattr(local.HfApi, "model_info", no_network)
    with pytest.raises(ModelError, match=r"'nobody/nothing': 404 Client Error\.$"):
        opened("nobody/nothing")


def test_open_gguf_several_or_damaged_are_refused(tiny_gpt2, tmp_path):
    pytest.importorskip("gguf")
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(ModelError, match=r"several GGUF files.*a\.gguf, b\.gguf"):
        opened(tmp_path)
    with pytest.raises(ModelError, match=r"'a\.gguf': [^\n]+$"):
        opened(tmp_path / "a.gguf")
    shutil.copytree(tiny_gpt2, tmp_path, dirs_exist_ok=True)
    assert opened(tmp_path).name == tmp_path.name


def without_tokenizer(copy):
    for path in copy.glob("tokenizer*"):
        path.unlink()


def with_pickled_weights(copy):
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")


def without_head(copy):
    config = transformers.GPT2Config.from_pretrained(copy, tie_word_embeddings=False)
    config.save_pretrained(copy)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("tiny_gpt2", without_tokenizer, "has no tokenizer"),
        ("tiny_t5", without_tokenizer, "has no tokenizer"),
        ("tiny_gpt2", with_pickled_weights, "of a generating model"),
        ("tiny_backbone", lambda copy: None, "of a generating model"),
        ("tiny_gpt2", without_head, r"lacks 1 weights .* lm_head\.weight"),
    ],
)
def test_open_or_check_a_damaged_model_is_refused(kind, change, message, request, tmp_path):
    copy = shutil.copytree(request.getfixturevalue(kind), tmp_path / "copy")
    change(copy)
    with pytest.raises(ModelError, match=message):
        opened(copy).check()


@pytest.mark.parametrize(
    ("stored", "native"), [(torch.float16, True), (torch.bfloat16, True), (torch.bfloat16, False)]
)
def test_dtype_on_a_cpu_is_bfloat16_only_where_that_is_fast(
    tiny_gpt2, tmp_path, monkeypatch, stored, native
):
    copy = tmp_path / "half"
    transformers.GPT2LMHeadModel.from_pretrained(tiny_gpt2).to(stored).save_pretrained(copy)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tiny_gpt2 / name, copy)
    monkeypatch.setattr(local, "uses_bfloat16", {"auto": native}.__getitem__)
    fast = native and stored == torch.bfloat16
    backend = opened(copy, device="cpu")
    assert backend.identity["dtype"] == ("bfloat16" if fast else "float32")
    assert backend._model.dtype == (torch.bfloat16 if fast else torch.float32)
