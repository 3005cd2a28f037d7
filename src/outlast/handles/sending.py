"""A person's message on its way into a session's inbox."""

from collections.abc import Sequence
from functools import partial

from outlast import trace
from outlast.errors import InvalidInput, NotFound
from outlast.events.foreign import BODY_OF_AN_INPUT
from outlast.handles import reading
from outlast.handles.files import Files
from outlast.handles.services.attachments import Attachment, Context, body_of, named
from outlast.handles.services.services import Services
from outlast.handles.turn import Sent
from outlast.ids import OwnerId, SessionId
from outlast.store.repositories.files import add, check_room
from outlast.store.repositories.inputs import SAID_BY, Mode
from outlast.store.unit import Unit
from outlast.transitions.sessions import profile
from outlast.transitions.turns import inbox
from outlast.transitions.turns.inbox import Accepted
from outlast.wire.message import WhenBusy


async def send(
    services: Services,
    session_id: SessionId,
    text: str,
    *,
    owner_id: OwnerId,
    when_busy: WhenBusy = "steer",
    context: Context | None = None,
    files: Sequence[Attachment | str] = (),
    model: str | None = None,
    by: str | None = None,
    idempotency_key: str | None = None,
) -> Sent:
    """Accept a message. Returns when it is committed. `by` says who said it, else the owner did."""
    if when_busy not in Mode._value2member_map_:
        raise InvalidInput(f"when_busy={when_busy!r} is not known: use steer, queue, interrupt or reject.")
    services.check_overrides()
    inbox.check_text(text, services.limits.max_text)
    if files or model is not None:
        # Files are kept before the message is: only for a session that is there, and the caller's own.
        look = partial(reading.there, session_id=session_id, owner_id=owner_id)
        agent = (await services.database.read(look, is_single=True)).agent
        profile.check_model(model, await services.agents.find_models(agent) or ())
    text = services.secrets.mask(text)
    attached = [await _attached(services, owner_id, each) for each in files]
    body = await body_of(services.files, session_id, context=context, files=attached, model=model)
    body |= {SAID_BY: by or owner_id}
    body = BODY_OF_AN_INPUT(services.secrets, body)
    if carrier := trace.carrier():
        body[trace.KEY] = carrier

    given = named(body, by=owner_id)

    def accept(unit: Unit) -> Accepted:
        accepted = inbox.accept(
            unit,
            session_id,
            text,
            owner_id=owner_id,
            mode=Mode(when_busy),
            body=body,
            idempotency_key=idempotency_key,
        )
        if given and not accepted.is_repeat:
            check_room(unit, session_id, given)
            for each in given:
                add(unit, session_id, each)
        return accepted

    try:
        accepted = await services.database.transaction(accept, name="accept")
    except NotFound:
        # Deleted, perhaps just now: then nobody else removes the files that came with this message.
        if files:
            await services.files.remove_all(session_id)
        raise
    return Sent(services, session_id, owner_id, accepted)


async def _attached(services: Services, owner_id: OwnerId, given: Attachment | str) -> Attachment:
    """One of the owner's own files by its id, of whichever session; that of this one keeps a copy."""
    if isinstance(given, Attachment):
        return given
    try:
        found = await Files(services, owner_id).get(given)
    except NotFound as exc:
        raise InvalidInput(f"There is no file {given[:120]!r}: a message takes ids of your own files.") from exc
    return Attachment(found.name or "file", found.data, found.media_type)
