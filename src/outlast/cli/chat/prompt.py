"""The prompt of a chat in a terminal, by prompt_toolkit: what is typed, below what is said and going on."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from types import TracebackType
from typing import Self, TextIO, cast

from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.console import Console
from rich.text import Text

from outlast.cli.chat.input import Input, Key, Line
from outlast.cli.terminal.lines import LineStream
from outlast.cli.terminal.stream import raw
from outlast.observe.plain import plain

PROMPT = "› "


class Prompt:
    """A display with a line to type in, from `async with` on: lines and keys are given to `take` as they come.

    Meanwhile what anybody prints to standard output or error stands above the prompt. The terminal is given back as it
    was. What was typed before is taken, too.
    """

    can_redraw = True

    def __init__(self, console: Console, take: Callable[[Input], None]) -> None:
        self._console = console
        self._take = take
        self._rows: StyleAndTextTuples = []
        self._restore = ExitStack()
        self._task: asyncio.Task[str] | None = None
        # Without questions to the terminal for its cursor: not every one answers, and none need.
        output = Vt100_Output(raw(sys.stdout), self._size, enable_cpr=False)
        self._session: PromptSession[str] = PromptSession(
            self._message,
            key_bindings=self._keys(),
            input=Vt100Input(sys.stdin),
            output=output,
            erase_when_done=True,
            enable_suspend=True,
            reserve_space_for_menu=0,
        )
        # It would end at each line; this one goes on.
        self._session.default_buffer.accept_handler = self._accept

    @property
    def width(self) -> int:
        return self._console.width

    @property
    def height(self) -> int:
        return self._console.height

    def print(self, text: Text) -> None:
        app = self._session.app
        if app.is_running:
            app.renderer.erase()
        self._console.print(text)
        app.invalidate()

    def draw(self, rows: Sequence[Text]) -> None:
        # Words of others are filtered by the console; only its own colours are in what it gives.
        with self._console.capture() as captured:
            for row in rows:
                self._console.print(row)
        self._rows = to_formatted_text(ANSI(captured.get()))
        self._session.app.invalidate()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        started: asyncio.Future[None] = loop.create_future()
        # Signals and errors of the event loop are the program's own affair.
        running = self._session.prompt_async(
            pre_run=lambda: started.set_result(None), set_exception_handler=False, handle_sigint=False
        )
        self._task = asyncio.create_task(running, name="chat prompt")
        self._task.add_done_callback(lambda _: self._take(Key.END))
        await asyncio.wait({self._task, started}, return_when=asyncio.FIRST_COMPLETED)
        above = cast(TextIO, LineStream(raw(sys.stdout), loop, lambda line: self.print(Text(line))))
        self._restore.enter_context(redirect_stdout(above))
        self._restore.enter_context(redirect_stderr(above))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        sys.stdout.flush()
        self._restore.close()
        if not self._task.done():
            self._session.app.exit(result="")
        with suppress(EOFError):  # the terminal is gone
            await self._task

    def _message(self) -> StyleAndTextTuples:
        return [*self._rows, ("bold ansicyan", PROMPT)]

    def _size(self) -> Size:
        return Size(rows=self._console.height, columns=self._console.width)

    def _accept(self, buffer: Buffer) -> bool:
        self._take(Line(buffer.text))
        return False

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        def interrupt(_: KeyPressEvent) -> None:
            self._take(Key.INTERRUPT)

        def end(_: KeyPressEvent) -> None:
            self._take(Key.END)

        def paste(event: KeyPressEvent) -> None:
            """One text until Enter is pressed, line breaks and all; what a terminal would obey is made visible."""
            event.current_buffer.insert_text(plain(event.data))

        keys.add(Keys.ControlC)(interrupt)
        keys.add(Keys.ControlD, filter=Condition(lambda: not self._session.default_buffer.text))(end)
        keys.add(Keys.BracketedPaste)(paste)
        return keys
