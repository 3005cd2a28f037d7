"""An async iterator that is used in `async with`: `break` alone would leave it open."""

from collections.abc import AsyncGenerator, AsyncIterator
from types import TracebackType
from typing import Generic, Self, TypeVar

ItemT = TypeVar("ItemT")


class Stream(Generic[ItemT]):
    """An async iterator. Use it in `async with`, or close it when you leave early."""

    def __init__(self, items: AsyncGenerator[ItemT]) -> None:
        self._items = items

    def __aiter__(self) -> AsyncIterator[ItemT]:
        return self

    async def __anext__(self) -> ItemT:
        return await anext(self._items)

    async def aclose(self) -> None:
        await self._items.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
