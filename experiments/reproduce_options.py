"""Which options of ``condsim reproduce`` go with which experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.errors import InputError
from experiments.reproduce_default import NAME, OPTIONS

if TYPE_CHECKING:
    from experiments import Experiment

_ENCODERS = ("--backbone", "--set", "--seeds", "--full")
_LANGUAGE_MODELS = (
    "--model",
    "--base-url",
    "--scoring",
    "--max-requests",
    "--max-tokens",
    "--unlisted",
)
_CONTEXTS = ("--recipe", "--on", "--rows", "--set", "--full")


def given_options(values: dict[str, object]) -> list[str]:
    """Finds the options that were given.

    Args:
        values: What each option holds. None, an empty list and a flag not set are not given; a
            count of 0 is.

    Returns:
        Their names.
    """
    return [
        name
        for name, value in values.items()
        if value is not None and value is not False and value != []
    ]


def check_default(given: list[str]) -> None:
    """Refuses options that default-model does not have.

    Args:
        given: Names of the options given.

    Raises:
        InputError: If there is one.
    """
    wrong = [option for option in given if option not in OPTIONS]
    if wrong:
        raise InputError(
            f"{wrong[0]} does not apply to {NAME}, which makes one model; it takes "
            f"{', '.join(OPTIONS)}, --data and --runs."
        )


def check_options(experiment: Experiment, given: list[str]) -> None:
    """Refuses options that an experiment of this kind does not have.

    Args:
        experiment: The experiment.
        given: Names of the options given.

    Raises:
        InputError: If there is one.
    """
    prompting = experiment.kind == "prompting"
    applies: tuple[str, ...] = _ENCODERS
    does = "runs encoders; name them with --backbone"
    if prompting:
        applies, does = _LANGUAGE_MODELS, "asks language models; name them with --model"
    elif experiment.kind in ("contexts", "cases"):
        applies, does = _CONTEXTS, "learns from a corpus; name it with --recipe"
    for option in given:
        if option not in applies:
            raise InputError(f"{option} does not apply to {experiment.name}, which {does}.")
    if prompting and given and "--model" not in given:
        raise InputError(f"{given[0]} is of no use without a language model: name it with --model.")
