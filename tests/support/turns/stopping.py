"""Stopping in tests, with what must hold after every stop."""

from outlast import Outcome, Session
from outlast.testing import ScriptedModel
from tests.support.logs.histories import check_history
from tests.support.models.providers import check_providers
from tests.support.turns.runtime import event_types, scripted


async def stop(session: Session) -> Outcome:
    """Stop, and check what holds after every stop."""
    outcome = await session.stop()
    assert outcome is not None
    assert outcome.state == "stopped"
    assert (await session.refresh()).is_held
    check_history(await session.history())
    assert (await event_types(session)).count("turn.stopped") == 1
    return outcome


async def goes_on(session: Session) -> None:
    """A new message right after Stop works at once, and leaves a history that every provider takes."""
    outcome = await session.ask("Go on.")
    assert (outcome.state, outcome.text) == ("completed", "Going on.")
    assert not (await session.refresh()).is_held
    history = await session.history()
    check_history(history)
    await check_providers(history)


def going_on(*steps: object) -> ScriptedModel:
    return scripted(*steps, "Going on.")
