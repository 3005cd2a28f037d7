"""What the tools of chaos do: they write down what they begin and what they have done, where no crash reaches it."""

from collections.abc import Callable

from pydantic_ai import RunContext

import outlast
from chaos.ledger import Ledger
from chaos.plan import Moment
from chaos.words import result_of

At = Callable[[str, Moment], None]
"""Told each place that a worker reaches; may not return."""


class Effects:
    """What every tool does: a line in the ledger before its effect, and one after it."""

    def __init__(self, ledger: Ledger, at: At) -> None:
        self.ledger = ledger
        self._at = at

    def begin(self, context: RunContext[object]) -> None:
        self._write(context, "before")

    def finish(self, context: RunContext[object]) -> str:
        self._write(context, "after")
        return result_of(context.tool_call_id or "")

    def _write(self, context: RunContext[object], moment: Moment) -> None:
        key = outlast.idempotency_key() or ""
        self.ledger.write(context.tool_call_id or "", key, context.tool_name or "", moment)
        self._at("tool", moment)
