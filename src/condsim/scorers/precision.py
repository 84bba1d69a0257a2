"""Which number format an encoder computes in when it scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from condsim.errors import unknown_name

if TYPE_CHECKING:
    import torch

__all__ = ["Numbers", "Precision", "check_precision", "numbers_on"]

Numbers = Literal["float32", "bfloat16"]
"""A number format. With ``bfloat16`` products are taken of numbers of 8 significant bits and added
up in float32; weights, normalization and embeddings are float32."""

Precision = Literal["auto", "float32", "bfloat16"]
"""What may be asked for. ``auto``: bfloat16 on a processor that has matrix units for it (AMX) and
is twice as fast by them, else float32."""


def check_precision(precision: str) -> None:
    """Refuses what is no precision.

    Args:
        precision: What was asked for.

    Raises:
        InputError: If it is none of `Precision`.
    """
    if precision not in get_args(Precision):
        raise unknown_name("precision", precision, get_args(Precision))


def numbers_on(device: torch.device, precision: Precision) -> Numbers:
    """Decides on the number format.

    Args:
        device: Where the model is.
        precision: What was asked for.

    Returns:
        The format.

    Raises:
        InputError: If the precision is unknown.
    """
    check_precision(precision)
    if precision != "auto":
        return precision
    import torch

    has_units = device.type == "cpu" and torch.cpu.get_capabilities().get("amx_bf16", False)
    return "bfloat16" if has_units else "float32"
