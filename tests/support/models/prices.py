"""A scripted model that costs money: each response says its price, as some providers do."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai.models import StreamedResponse

from outlast.testing import ScriptedModel


class PricedModel(ScriptedModel):
    """`dollars` for each response; None: nobody says what it costs."""

    def __init__(self, steps: Any, *, dollars: float | None) -> None:
        super().__init__(steps)
        self.dollars = dollars

    @asynccontextmanager
    async def request_stream(self, *args: Any, **options: Any) -> AsyncGenerator[StreamedResponse]:
        async with super().request_stream(*args, **options) as stream:
            if self.dollars is not None:
                stream.provider_details = {"cost": self.dollars}
            yield stream
