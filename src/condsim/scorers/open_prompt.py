"""From settings to a prompted model: back end, examples and stored answers put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from condsim.errors import InputError
from condsim.prompting.asking import Asker, Budget
from condsim.prompting.backends.base import Backend
from condsim.prompting.settings import PromptSettings, load_settings
from condsim.prompting.shots import Shots
from condsim.scorers.prompt import PromptScorer
from condsim.tasks import load_task

__all__ = ["assembled", "open_asker", "open_backend", "open_prompt_scorer"]


def open_backend(settings: PromptSettings) -> Backend:
    """Makes the back end that settings name; nothing is sent.

    Args:
        settings: The settings.

    Returns:
        The back end.

    Raises:
        InputError: If the address is none, or there is no key for it.
        ModelError: If there is no such model on this machine.
        MissingExtraError: If the ``llm`` extra is not installed.
    """
    if settings.backend == "server":
        from condsim.prompting.backends.server import ServerBackend

        return ServerBackend(
            settings.model,
            base_url=settings.base_url,
            concurrency=settings.concurrency,
            timeout_s=settings.timeout,
            retries=settings.retries,
            max_new_tokens=settings.max_new_tokens,
            unlisted=settings.unlisted,
        )
    from condsim.prompting.backends.local import LocalBackend

    return LocalBackend(
        settings.model, device=settings.device, max_new_tokens=settings.max_new_tokens
    )


def open_asker(
    file: Path, *, new_tokens: int, progress: Callable[[int, int], None] | None = None
) -> tuple[Asker, str]:
    """Makes what asks a language model other things than scores; nothing is asked.

    Args:
        file: Settings of a prompted model; of those of scoring none counts.
        new_tokens: Tokens that an answer may need; the settings may have more.
        progress: Called with questions answered and questions in all.

    Returns:
        The asker and the name of the model.

    Raises:
        InputError: If the file is no YAML file or breaks a rule; see also `open_backend`.
        ModelError: See `open_backend`.
        MissingExtraError: See `open_backend`.
    """
    if file.suffix not in (".yaml", ".yml"):
        raise InputError(
            "Only a language model answers in words: give the YAML file that 'condsim prompt "
            f"--save' writes. Got {str(file)!r}."
        )
    settings = load_settings(file)
    settings = replace(settings, max_new_tokens=max(settings.max_new_tokens, new_tokens))
    backend = open_backend(settings)
    budget = Budget(settings.max_requests, settings.max_tokens)
    return Asker(backend, settings.answers, budget=budget, progress=progress), backend.name


def open_prompt_scorer(
    settings: PromptSettings, *, progress: Callable[[int, int], None] | None = None
) -> PromptScorer:
    """Makes a scorer of settings, the likely mistakes first; nothing is asked.

    Args:
        settings: The settings.
        progress: Called with rows answered and rows in all.

    Returns:
        The scorer.

    Raises:
        InputError: If the training file breaks a rule; see also `open_backend`.
        ModelError: See `open_backend`.
        MissingExtraError: See `open_backend`.
    """
    shots = None
    if settings.shots and settings.train is not None:
        shots = Shots(
            load_task(Path(settings.train), require_labels=True),
            settings.shots,
            seed=settings.seed,
        )
    budget = Budget(settings.max_requests, settings.max_tokens)
    return assembled(
        settings, open_backend(settings), shots=shots, budget=budget, progress=progress
    )


def assembled(
    settings: PromptSettings,
    backend: Backend,
    *,
    shots: Shots | None,
    budget: Budget,
    progress: Callable[[int, int], None] | None = None,
) -> PromptScorer:
    """Puts a scorer together of parts that are there; nothing is asked.

    Args:
        settings: The settings.
        backend: The back end.
        shots: Draws the examples; None for none.
        budget: What may be asked for; it goes before that of the settings.
        progress: Called with rows answered and rows in all.

    Returns:
        The scorer.
    """
    asker = Asker(
        backend,
        settings.answers,
        budget=budget,
        probabilities=settings.scoring == "expected",
        progress=progress,
    )
    return PromptScorer(
        asker,
        model=backend.name,
        instruction=settings.instruction,
        shots=shots,
        scoring=settings.scoring,
        parsing=settings.parsing,
        seed=settings.seed,
    )
