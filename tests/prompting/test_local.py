import itertools
import json
import shutil
import subprocess
import sys
from functools import cache

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from condsim.errors import BackendError, InputError, ModelError  # noqa: E402
from condsim.prompting import local  # noqa: E402
from condsim.prompting.local import (  # noqa: E402
    LocalBackend,
    NumberRecorder,
    longest_prompt,
    number_tokens,
)
from condsim.prompting.settings import PromptSettings  # noqa: E402

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


def test_answers_do_not_depend_on_the_batch(folder, monkeypatch):
    together = answers_of(opened(folder), PROMPTS, probabilities=True)
    monkeypatch.setattr(local, "_CPU_TOKENS_PER_BATCH", 1)
    alone = answers_of(opened(folder), PROMPTS, probabilities=True)
    for one, other in zip(together, alone, strict=True):
        assert one.text == other.text
        assert one.new_tokens == other.new_tokens
        assert one.probabilities == pytest.approx(other.probabilities, rel=1e-4, abs=1e-7)


def test_answers_read_an_endless_source_one_window_ahead(tiny_gpt2, monkeypatch):
    monkeypatch.setattr(local, "_PROMPTS_PER_WINDOW", 4)
    read = []

    def endless():
        for number in itertools.count():
            read.append(number)
            yield f"Sentence {number}"

    found = list(itertools.islice(opened(tiny_gpt2).answers(endless()), 10))
    assert len(found) == 10
    assert len(read) == 12
    assert {place for place, _ in found[:8]} == set(range(8))


def test_answers_pad_causal_prompts_left_and_seq2seq_prompts_right(folder, monkeypatch):
    backend = opened(folder)
    backend.check()
    seen = []
    generate = backend._model.generate

    def spy(**inputs):
        seen.append(inputs["attention_mask"])
        return generate(**inputs)

    monkeypatch.setattr(backend._model, "generate", spy)
    list(backend.answers(["A man", "A man throws a ball in the park."]))
    (mask,) = seen
    long, short = mask.tolist()
    assert all(long)
    assert short == sorted(short, reverse=folder.name == "tiny-t5")
    assert not all(short)


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


def test_answers_too_little_memory_for_one_prompt_says_so(tiny_gpt2, monkeypatch):
    backend = opened(tiny_gpt2)

    def scarce(rows, mass):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(backend, "_generate", scarce)
    with pytest.raises(BackendError, match=r"too little memory on cpu for one prompt of \d+ tok"):
        list(backend.answers(PROMPTS))


def test_identity_names_model_version_and_settings_and_no_path(folder):
    identity = opened(folder).identity
    assert {**identity, "revision": ""} == {
        "backend": "local",
        "model": folder.name,
        "revision": "",
        "max_new_tokens": "20",
        "chat": "yes" if "chat" in folder.name else "no",
        "dtype": "float32",
    }
    assert len(identity["revision"]) == 12
    assert opened(folder).identity == identity


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


def test_local_backend_needs_no_sentence_transformers():
    code = (
        "import sys; sys.modules['sentence_transformers'] = None\n"
        "from condsim.prompting.local import LocalBackend"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("model", ["./none", "~/none", "a/b/c"])
def test_open_missing_folder_is_refused(model):
    with pytest.raises(ModelError, match="There is no model folder"):
        opened(model)


def test_open_unknown_hub_name_is_one_line(monkeypatch):
    def no_network(self, name, timeout):
        raise OSError("404 Client Error.\nSecond line")

    monkeypatch.setattr(local.HfApi, "model_info", no_network)
    with pytest.raises(ModelError, match=r"'nobody/nothing': 404 Client Error\.$"):
        opened("nobody/nothing")


def test_open_unknown_device_is_refused(tiny_gpt2):
    with pytest.raises(InputError, match="'abacus'"):
        opened(tiny_gpt2, device="abacus")


def test_check_encoder_and_pickled_weights_are_refused(tiny_backbone, tiny_gpt2, tmp_path):
    copy = tmp_path / "pickled"
    shutil.copytree(tiny_gpt2, copy)
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    for folder in (tiny_backbone, copy):
        with pytest.raises(ModelError, match="of a generating model"):
            opened(folder).check()


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


@pytest.mark.parametrize("kind", ["tiny_gpt2", "tiny_t5"])
def test_open_missing_tokenizer_is_refused(kind, request, tmp_path):
    copy = tmp_path / "mute"
    shutil.copytree(request.getfixturevalue(kind), copy)
    for path in copy.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(ModelError, match="'mute' has no tokenizer"):
        opened(copy)


def test_check_missing_head_is_refused(tiny_gpt2, tmp_path):
    copy = tmp_path / "headless"
    shutil.copytree(tiny_gpt2, copy)
    config = transformers.GPT2Config.from_pretrained(tiny_gpt2, tie_word_embeddings=False)
    config.save_pretrained(copy)
    with pytest.raises(ModelError, match=r"lacks 1 weights .* lm_head\.weight"):
        opened(copy).check()


@pytest.mark.parametrize(
    ("stored", "native"),
    [(torch.float16, True), (torch.bfloat16, True), (torch.bfloat16, False)],
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


def word_tokenizer(*words):
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {word: number for number, word in enumerate(["<end>", *words])}
    model = tokenizers.models.WordLevel(vocabulary, unk_token="<end>")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(model), eos_token="<end>", pad_token="<end>"
    )


def test_number_tokens_are_ascii_numbers_alone():
    words = ["4", " 4", "4.0", "10", "4.", ".5", "-1", "４", "٤", "a4", "4th", "1,000", "1e3", "2"]  # noqa: RUF001
    # The model has no score for the last token.
    assert number_tokens(word_tokenizer(*words), 14) == {1: 4.0, 2: 4.0, 3: 4.0, 4: 10.0}


def test_number_recorder_adds_equal_numbers_and_changes_nothing():
    recorder = NumberRecorder({1: 4.0, 2: 4.0, 3: 5.0}, torch.device("cpu"))
    scores = torch.tensor([[0.1, 0.2, 0.3, 0.3, 0.1], [0.6, 0.0, 0.1, 0.1, 0.2]]).log() + 7
    assert recorder(torch.zeros(2, 1), scores) is scores
    torch.testing.assert_close(recorder.steps[0], torch.tensor([[0.5, 0.3], [0.1, 0.1]]))


@pytest.mark.parametrize(
    ("config", "tokens", "expected"),
    [
        (transformers.GPT2Config(n_positions=100), 1e30, 80),
        (transformers.GPT2Config(n_positions=100), 50, 30),
        (transformers.BartConfig(max_position_embeddings=100), 1e30, 100),
        (transformers.T5Config(), 512, None),
        (transformers.BloomConfig(), 1e30, None),
    ],
)
def test_longest_prompt_is_the_models_positions_less_the_answer(config, tokens, expected):
    assert longest_prompt(config, tokens, max_new_tokens=20) == expected
