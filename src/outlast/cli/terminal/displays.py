"""Displays without a prompt: a terminal whose lower rows are drawn anew, and anything else."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text


class LiveDisplay:
    """A terminal. Use it in `with`: the rows are gone at the end, the lines stay."""

    can_redraw = True

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop")

    @property
    def width(self) -> int:
        return self._console.width

    @property
    def height(self) -> int:
        return self._console.height

    def print(self, text: Text) -> None:
        self._console.print(text)

    def draw(self, rows: Sequence[Text]) -> None:
        self._live.update(Group(*rows), refresh=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()


class LinesDisplay:
    """Lines only: for a pipe, a file or a picture. Use it in `with`, as the other one."""

    can_redraw = False

    def __init__(self, console: Console) -> None:
        self._console = console

    @property
    def width(self) -> int:
        return self._console.width

    @property
    def height(self) -> int:
        return self._console.height

    def print(self, text: Text) -> None:
        self._console.print(text)

    def draw(self, rows: Sequence[Text]) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass
