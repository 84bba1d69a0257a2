"""Many prompts as one would ask them first: the ``openai`` client, gather and a semaphore."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from openai import AsyncOpenAI

__all__ = ["answer_all"]


def answer_all(
    prompts: Sequence[str], *, base_url: str, model: str, concurrency: int, max_new_tokens: int
) -> list[str]:
    """Answer prompts.

    Args:
        prompts: The prompts.
        base_url: Address of the server, which wants no key.
        model: Name of the model.
        concurrency: Requests under way at once.
        max_new_tokens: Longest answer in tokens.

    Returns:
        The text of each answer.

    Raises:
        openai.OpenAIError: If a request fails for good.
    """

    async def all_of_them() -> list[str]:
        turn = asyncio.Semaphore(concurrency)
        async with AsyncOpenAI(base_url=base_url, api_key="none") as client:

            async def one(prompt: str) -> str:
                async with turn:
                    completion = await client.chat.completions.create(
                        model=model,
                        messages=[{"role": "user", "content": prompt}],
                        temperature=0,
                        max_tokens=max_new_tokens,
                    )
                return completion.choices[0].message.content or ""

            return await asyncio.gather(*map(one, prompts))

    return asyncio.run(all_of_them())
