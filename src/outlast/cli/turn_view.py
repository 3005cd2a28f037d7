"""A turn of a server's session, shown as it happens."""

from collections.abc import Callable

from rich.console import Console

from outlast.cli.asking import say
from outlast.cli.chat_screen import PlainScreen
from outlast.cli.chat_view import ChatView
from outlast.cli.exits import Exit
from outlast.cli.tables import print_json_line
from outlast.client.session import Session
from outlast.client.turn import Sent
from outlast.events.event import Event

_STEP = 1_000
_ENDS = {"turn.completed": Exit.OK, "turn.failed": Exit.FAILED, "turn.stopped": Exit.FAILED}


async def show_turn(session: Session, turn_id: str, *, as_json: bool) -> Exit:
    """A turn from its beginning to its end."""
    begin = await _beginning(session, turn_id)
    with PlainScreen(Console(highlight=False)) as screen:
        return await _show(session, begin, screen, lambda event: event.turn_id == turn_id, as_json=as_json)


async def show_answer(session: Session, sent: Sent, *, as_json: bool) -> Exit:
    """The turn in which the model sees the message, from there to its end."""
    turn_id = sent.turn_id

    def is_wanted(event: Event) -> bool:
        nonlocal turn_id
        if event.type == "input.delivered" and event.data["input_id"] == sent.input_id:
            turn_id = event.turn_id
        return turn_id is not None and event.turn_id == turn_id

    with PlainScreen(Console(highlight=False), notes=Console(stderr=True, highlight=False)) as screen:
        return await _show(session, session.last_event, screen, is_wanted, as_json=as_json)


async def _beginning(session: Session, turn_id: str) -> int:
    """The position before a turn's first event; looked for from the end, in ever larger steps."""
    step = _STEP
    while True:
        begin = max(0, session.last_event - step)
        async with session.events(after=begin, follow=False, types=["turn.queued"]) as stream:
            async for event in stream:
                if event.turn_id == turn_id and event.number is not None:
                    return event.number - 1
        if begin == 0:
            return 0
        step *= 4


async def _show(
    session: Session, after: int, screen: PlainScreen, is_wanted: Callable[[Event], bool], *, as_json: bool
) -> Exit:
    view = ChatView(screen, watched=session.id)
    async with session.events(after=after) as stream:
        async for event in stream:
            if not is_wanted(event):
                continue
            if as_json:
                print_json_line(event)
            else:
                view.show(event)
            if event.is_terminal:
                return _ENDS[event.type]
    say("The session was deleted.")
    return Exit.NOT_FOUND
