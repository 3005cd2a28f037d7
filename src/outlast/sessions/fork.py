"""Forking: another session that begins with what was said in this one. Its tasks and its inbox stay where they are."""

from outlast.errors import InvalidInput
from outlast.sessions import history
from outlast.sessions.services import Services
from outlast.sessions.session import Session

STILL_RUNNING = (
    "This call was still running in the conversation from which this one was forked. Its result is not known here."
)


async def messages_up_to(services: Services, source: Session, at: int | None) -> list[history.ModelMessage]:
    """What the model sees up to a position, without open calls: what runs in the source does not run in the fork."""
    if at is not None and at < 0:
        raise InvalidInput(f"There is no position {at} in a history: the first is 1.")
    entries = await history.load(services.database, services.files, source.id)
    kept = [each.message for each in entries if at is None or each.position <= at]
    return history.closed(kept, STILL_RUNNING)
