from __future__ import annotations

import pytest
from transformers.utils import logging


@pytest.fixture(autouse=True, scope="session")
def _no_progress_bars():
    logging.disable_progress_bar()
    yield
    logging.enable_progress_bar()


@pytest.fixture(scope="session")
def pairs():
    """Three conditional sentences, condition first, of two sentences and two conditions."""
    return [
        ["the sport", "a man throws a ball."],
        ["the number of people", "a man throws a ball."],
        ["the sport", "two dogs run in the park with a big red ball."],
    ]
