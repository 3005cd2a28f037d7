"""The command's own console: its colours and cursor movements pass, the words in it are filtered as all others."""

import sys
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from outlast.cli.terminal.stream import raw
from outlast.observe.plain import plain


def console(file: TextIO | None = None, *, stderr: bool = False) -> Console:
    """For colours and cursor movements of our own. Its words are taken as they are: no markup, no emoji codes."""
    file = file or raw(sys.stderr if stderr else sys.stdout)
    return _PlainConsole(file=file, stderr=stderr, markup=False, highlight=False, emoji=False)


def ring() -> None:
    """The bell, where a person sits: somebody is needed."""
    terminal = sys.__stderr__
    if terminal is not None and terminal.isatty():
        terminal.write("\a")
        terminal.flush()


class _PlainConsole(Console):
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else _plain_segment(segment)


def _plain_segment(segment: Segment) -> Segment:
    text, style = plain(segment.text), segment.style
    if style is not None and style.link is not None:
        style = style.update_link(None)
    return segment if text is segment.text and style is segment.style else Segment(text, style)
