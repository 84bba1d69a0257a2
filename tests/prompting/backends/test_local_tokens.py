import math

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from condsim.errors import ModelError  # noqa: E402
from condsim.prompting.local_model import NumberMass, Numbers, PromptTokenizer, longest_prompt  # noqa: E402


def word_tokenizer(*words):
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {word: number for number, word in enumerate(["<end>", *words])}
    model = tokenizers.models.WordLevel(vocabulary, unk_token="<end>")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(model), eos_token="<end>", pad_token="<end>"
    )


def test_numbers_are_tokens_that_read_as_an_ascii_number_alone():
    words = ["4", " 4", "4.0", "10", "4.", ".5", "-1", "４", "٤", "a4", "4th", "1,000", "1e3", "2"]  # noqa: RUF001
    numbers = Numbers(word_tokenizer(*words), vocabulary=14)
    assert numbers.value_of == {1: 4.0, 2: 4.0, 3: 4.0, 4: 10.0}  # "2" has no score of the model
    assert numbers.values == [4.0, 10.0]


def test_number_mass_adds_equal_numbers_and_changes_nothing():
    numbers = Numbers(word_tokenizer("4", " 4", "5", "x"), vocabulary=5)
    mass = NumberMass(numbers, device=torch.device("cpu"))
    scores = torch.tensor([[0.1, 0.2, 0.3, 0.3, 0.1], [0.6, 0.0, 0.1, 0.1, 0.2]]).log() + 7
    assert mass(torch.zeros(2, 1), scores) is scores
    (step,) = mass.steps
    torch.testing.assert_close(step, torch.tensor([[0.5, 0.3], [0.1, 0.1]]))


def test_number_mass_without_number_tokens_keeps_nothing():
    numbers = Numbers(word_tokenizer("x"), vocabulary=2)
    mass = NumberMass(numbers, device=torch.device("cpu"))
    mass(torch.zeros(3, 1), torch.zeros(3, 2))
    assert mass.steps[0].shape == (3, 0)


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
    tokenizer = word_tokenizer("a")
    tokenizer.model_max_length = int(tokens)
    assert longest_prompt(config, tokenizer, max_new_tokens=20) == expected


def test_prompt_tokenizer_template_that_fails_is_a_model_error():
    tokenizer = word_tokenizer("a")
    tokenizer.chat_template = "{{ raise_exception('needs a system message') }}"
    with pytest.raises(ModelError, match=r"template of 'm' must take one .* needs a system mess"):
        PromptTokenizer(tokenizer, name="m")


def test_prompt_tokenizer_asks_the_template_to_leave_out_thinking():
    tokenizer = word_tokenizer("on", "off")
    tokenizer.chat_template = "{{ 'off' if enable_thinking is false else 'on' }}"
    assert PromptTokenizer(tokenizer, name="m").encode(["x"]) == [[2]]


def test_number_mass_probability_is_right_for_large_scores():
    numbers = Numbers(word_tokenizer("4", "5"), vocabulary=3)
    mass = NumberMass(numbers, device=torch.device("cpu"))
    mass(torch.zeros(1, 1), torch.tensor([[-1e4, 1e4, 1e4 + math.log(3)]]))
    torch.testing.assert_close(mass.steps[0], torch.tensor([[0.25, 0.75]]), rtol=1e-3, atol=0)
