"""A person's message on its way to a server."""

from collections.abc import Sequence
from uuid import uuid4

from outlast.client.connection import Connection, path
from outlast.client.turn import Sent
from outlast.wire.attachment import Attachment, Context
from outlast.wire.message import AcceptedAnswer, ContextBody, FileBody, FileIdBody, MessageBody, WhenBusy


async def send(
    connection: Connection,
    session_id: str,
    text: str,
    *,
    when_busy: WhenBusy = "steer",
    context: Context | None = None,
    files: Sequence[Attachment | str] = (),
    model: str | None = None,
    by: str | None = None,
    idempotency_key: str | None = None,
) -> Sent:
    """Have a message accepted, once, also over a connection that is cut."""
    body = MessageBody.model_construct(
        text=text,
        when_busy=when_busy,
        context=None if context is None else ContextBody.model_construct(content=context.content, url=context.url),
        files=[FileBody.of(each) if isinstance(each, Attachment) else FileIdBody(id=each) for each in files],
        model=model,
        by=by,
    )
    answer = await connection.ask(
        "POST",
        path("sessions", session_id, "messages"),
        body=body.model_dump(mode="json", exclude_none=True),
        key=idempotency_key or str(uuid4()),
    )
    return Sent(connection, session_id, AcceptedAnswer.model_validate(answer))
