"""A turn of a server's session, shown as it happens."""

from collections.abc import Callable

from outlast.cli.asking import say
from outlast.cli.exits import Exit
from outlast.cli.terminal.console import console
from outlast.cli.terminal.screen import PlainScreen
from outlast.cli.terminal.session_view import SessionView
from outlast.cli.terminal.tables import print_json_line
from outlast.cli.whole_output import with_output
from outlast.client.session import Session
from outlast.client.turn import Sent
from outlast.events.event import Event

_STEP = 1_000
_ENDS = {"turn.completed": Exit.OK, "turn.failed": Exit.FAILED, "turn.stopped": Exit.FAILED}


async def show_turn(session: Session, turn_id: str, *, as_json: bool) -> Exit:
    """A turn from its beginning to its end."""
    begin = await _beginning(session, turn_id)
    with PlainScreen(console()) as screen:
        return await _show(session, begin, screen, lambda event: event.turn_id == turn_id, as_json=as_json)


async def show_answer(session: Session, sent: Sent, *, is_turn_only: bool, as_json: bool) -> Exit:
    """The turn in which the model sees the message, from there to its end; or all from there, until it has settled."""
    turn_id, has_begun = sent.turn_id, False

    def is_wanted(event: Event) -> bool:
        nonlocal turn_id, has_begun
        if event.type == "input.delivered" and event.data["input_id"] == sent.input_id:
            turn_id = event.turn_id
        is_own = turn_id is not None and event.turn_id == turn_id
        has_begun = has_begun or is_own
        return is_own if is_turn_only else has_begun

    settling = None if is_turn_only else _Settling(session)
    with PlainScreen(console(), notes=console(stderr=True)) as screen:
        return await _show(session, session.last_event, screen, is_wanted, settling, as_json=as_json)


class _Settling:
    """Whether all that a session was set to work on is shown: asked where the log says that something has ended."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._until: int | None = None
        """The last event by the time at which it had settled."""

    async def is_shown(self, event: Event, position: int) -> bool:
        if (event.is_terminal or event.type == "task.ended") and await self._session.is_settled():
            self._until = (await self._session.refresh()).last_event
        return self._until is not None and position >= self._until


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
    session: Session,
    after: int,
    screen: PlainScreen,
    is_wanted: Callable[[Event], bool],
    settling: _Settling | None = None,
    *,
    as_json: bool,
) -> Exit:
    view = SessionView(screen, watched=session.id)
    ended: Exit | None = None
    async with session.events(after=after) as stream:
        async for event in stream:
            if not is_wanted(event):
                continue
            event = await with_output(session, event)
            if as_json:
                print_json_line(event)
            else:
                view.show(event)
            if event.is_terminal:
                ended = _ENDS[event.type]
            if event.is_terminal if settling is None else await settling.is_shown(event, stream.position):
                return ended or Exit.OK
    say("The session was deleted.")
    return Exit.NOT_FOUND
