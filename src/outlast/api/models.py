"""What goes over the wire, as routes name it. `outlast.wire` has it for both ends."""

from collections.abc import Sequence

from outlast.ids import SessionId
from outlast.wire.event import EventAnswer, EventPage, FeedPage
from outlast.wire.forms import Answer, Body, ListOf
from outlast.wire.message import AcceptedAnswer, InputAnswer, InputChange, MessageBody, StoredMessage
from outlast.wire.session import ForkBody, SessionAnswer, SessionBody, SessionChange
from outlast.wire.task import CancelBody, PieceAnswer, ReplyBody, TaskAnswer
from outlast.wire.turn import OutcomeAnswer, SettleBody, StopBody, TurnAnswer, UsageAnswer

__all__ = [
    "AcceptedAnswer",
    "Answer",
    "Body",
    "CancelBody",
    "EventAnswer",
    "EventPage",
    "FeedPage",
    "ForkBody",
    "InputAnswer",
    "InputChange",
    "ListOf",
    "MessageBody",
    "OutcomeAnswer",
    "PieceAnswer",
    "ReplyBody",
    "SessionAnswer",
    "SessionBody",
    "SessionChange",
    "SettleBody",
    "StopBody",
    "StoredMessage",
    "TaskAnswer",
    "TurnAnswer",
    "UsageAnswer",
    "ids_of",
]


def ids_of(text: str | None) -> Sequence[SessionId]:
    """Ids in one parameter, separated by commas."""
    return [SessionId(each) for each in (text or "").split(",") if each]
