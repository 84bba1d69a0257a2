"""Conditional sentences on which activations are measured: our own, or those of a file."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from condsim.tasks import iter_csts

__all__ = ["SAMPLES", "samples_of"]

_ROWS = 256  # more change the measured ranges little

_SENTENCES = (
    "A man in a white cap serves a tennis ball on a clay court.",
    "Two children build a sandcastle on the beach.",
    "A red double-decker bus drives through the city in the rain.",
    "A brown dog sleeps on a green sofa next to a pile of folded laundry.",
    "Three friends share a large pizza at a kitchen table.",
    "A woman in a long coat plays the violin on stage at night.",
    "A train crosses a stone bridge high above a river.",
    "Snow covers the roofs of a small village.",
    "An old fisherman mends his nets on the pier while gulls circle overhead.",
    "A kitten looks at itself in the mirror.",
    "Several cyclists in bright jerseys race down a narrow mountain road.",
    "A bowl of noodles with egg, spring onions and chopsticks on the side.",
    "Rain.",
    "A skateboarder jumps over a fire hydrant as his friends watch and film him with a phone.",
    "The kitchen has wooden cabinets, a black stove and a window above the sink.",
    "Passengers wait on the platform with their luggage.",
    "A giraffe bends down to drink from a pond in the dry season.",
    "Someone is holding an umbrella.",
    "A surfer rides a wave!",
    "Two teams of girls play football on a muddy field in front of a small crowd.",
)
_CONDITIONS = (
    "the sport",
    "the number of people",
    "The color of the vehicle.",
    "type of animal",
    "the location",
    "what the person is doing",
    "the time of day",
    "the weather",
    "the food that is being eaten",
    "The age of the people.",
    "the room of the house",
    "means of transport",
)

SAMPLES: tuple[tuple[str, str], ...] = tuple(
    (sentence, _CONDITIONS[(3 * number + 5 * repeat) % len(_CONDITIONS)])
    for number, sentence in enumerate(_SENTENCES)
    for repeat in range(4)
)
"""Pairs of sentence and condition, typical of photo captions."""


def samples_of(path: Path) -> list[tuple[str, str]]:
    """Takes the conditional sentences of the first rows of a file.

    Args:
        path: A file of C-STS rows, labelled or not.

    Returns:
        Pairs of sentence and condition, two a row.

    Raises:
        InputError: If the file cannot be read or breaks a rule.
    """
    rows = islice(iter_csts(path, labels=False), _ROWS)
    return [(text, row.condition) for row in rows for text in (row.sentence1, row.sentence2)]
