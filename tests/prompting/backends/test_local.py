import itertools
import json
import shutil
from functools import cache

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from condsim.errors import BackendError, InputError, ModelError  # noqa: E402
from condsim.prompting import local  # noqa: E402
from condsim.prompting.local import LocalBackend  # noqa: E402
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


def test_answer_gap_only_a_causal_model_sees_a_space_before_an_answer(folder):
    assert opened(folder).answer_gap == ("" if folder.name == "tiny-t5" else " ")


def test_answers_in_batches_equal_those_of_transformers_one_by_one(folder, monkeypatch):
    monkeypatch.setattr(local, "_CPU_BATCH_TOKENS", 1500)
    monkeypatch.setattr(local, "_WINDOW", 10)
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
    monkeypatch.setattr(local, "_CPU_BATCH_TOKENS", 1)
    alone = answers_of(opened(folder), PROMPTS, probabilities=True)
    for one, other in zip(together, alone, strict=True):
        assert one.text == other.text
        assert one.new_tokens == other.new_tokens
        assert one.probabilities == pytest.approx(other.probabilities, rel=1e-4, abs=1e-7)


def test_answers_places_are_those_of_the_prompts_and_the_longest_come_first(folder, monkeypatch):
    monkeypatch.setattr(local, "_CPU_BATCH_TOKENS", 400)
    monkeypatch.setattr(local, "_WINDOW", 8)
    backend = opened(folder)
    found = list(backend.answers(PROMPTS))
    places = [place for place, _ in found]
    assert sorted(places) == list(range(len(PROMPTS)))
    assert places != sorted(places)
    for place, answer in found:
        assert answer.prompt_tokens == backend.count_tokens(PROMPTS[place])
    for start in range(0, len(found), 8):
        lengths = [answer.prompt_tokens for _, answer in found[start : start + 8]]
        assert lengths == sorted(lengths, reverse=True)


def test_answers_read_an_endless_source_one_window_ahead(tiny_gpt2, monkeypatch):
    monkeypatch.setattr(local, "_WINDOW", 4)
    read = []

    def endless():
        for number in itertools.count():
            read.append(number)
            yield f"Sentence {number}"

    found = list(itertools.islice(opened(tiny_gpt2).answers(endless()), 10))
    assert len(found) == 10
    assert len(read) == 12
    assert {place for place, _ in found[:8]} == set(range(8))


def test_answers_closed_early_reads_and_asks_nothing_more(tiny_gpt2, monkeypatch):
    monkeypatch.setattr(local, "_CPU_BATCH_TOKENS", 1)
    backend = opened(tiny_gpt2)
    sizes = []
    generate = backend._generate

    def counted(rows, mass):
        sizes.append(len(rows))
        return generate(rows, mass)

    monkeypatch.setattr(backend, "_generate", counted)
    answers = backend.answers(PROMPTS)
    next(answers)
    answers.close()
    assert sizes == [1]


def test_answers_max_new_tokens_bounds_the_answer(folder):
    backend = opened(folder, max_new_tokens=3)
    assert backend.max_new_tokens == int(backend.identity["max_new_tokens"]) == 3
    assert {answer.new_tokens for answer in answers_of(backend, PROMPTS)} <= {1, 2, 3}


def test_answers_no_prompts_gives_none(tiny_gpt2):
    assert list(opened(tiny_gpt2).answers([])) == []


def test_answers_empty_prompt_is_answered(folder):
    (answer,) = answers_of(opened(folder), [""])
    assert answer.prompt_tokens >= 1


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


def test_probabilities_sum_to_one_at_most_and_are_empty_without_a_number(folder):
    answers = answers_of(opened(folder), PROMPTS, probabilities=True)
    for answer in answers:
        assert sum(answer.probabilities.values()) <= 1 + 1e-6
        assert all(0 < probability <= 1 for probability in answer.probabilities.values())
        if not any(sign.isdigit() for sign in answer.text):
            assert answer.probabilities == {}


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


def test_answers_too_long_prompt_names_place_and_limit_before_its_window(tiny_gpt2, monkeypatch):
    monkeypatch.setattr(local, "_WINDOW", 2)
    backend = opened(tiny_gpt2)
    fits = "3" * 236
    assert backend.count_tokens(fits) == 236
    answers = backend.answers(["Short", fits, "Short", "3" * 237])
    assert sorted(place for place, _ in itertools.islice(answers, 2)) == [0, 1]
    message = "'tiny-gpt2' must have at most 236 tokens. Prompt 3 .* has 237; give fewer shots"
    with pytest.raises(InputError, match=message):
        next(answers)


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


def test_answers_failure_of_the_model_is_a_backend_error(tiny_gpt2, monkeypatch):
    backend = opened(tiny_gpt2)

    def broken(rows, mass):
        raise RuntimeError("CUDA error: device-side assert\nmore lines")

    monkeypatch.setattr(backend, "_generate", broken)
    with pytest.raises(BackendError, match="'tiny-gpt2' failed on cpu: CUDA error: device-side as"):
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


@pytest.mark.parametrize("device", ["cuda:99", "abacus"])
def test_local_backend_unknown_device_is_refused(tiny_gpt2, device):
    with pytest.raises(InputError, match=f"device must be one .* Got '{device}' instead"):
        opened(tiny_gpt2, device=device)


def test_check_loads_the_weights_and_count_tokens_does_not(tiny_gpt2, tmp_path):
    copy = tmp_path / "broken"
    shutil.copytree(tiny_gpt2, copy)
    (copy / "model.safetensors").write_bytes(b"not weights")
    backend = opened(copy)
    assert backend.count_tokens("A man") > 0
    with pytest.raises(ModelError, match="Could not load the weights of 'broken'"):
        backend.check()
