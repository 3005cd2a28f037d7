"""What an MCP server asks while a call of it runs: the call's question, answered like any other."""

from typing import Any

from outlast.calls.call import RunningCall, current_call
from outlast.errors import Conflict

_WORDS = ["accept", "decline"]
_SEVERAL = "Several calls of this server run, and it does not say which of them asks: nobody was asked."


class Elicitations:
    """Of one client. `running`: its calls that have no answer yet."""

    def __init__(self) -> None:
        self.running: list[RunningCall] = []

    async def ask(self, message: str, _response_type: Any, params: Any, _context: Any) -> Any:
        """For fastmcp's client. A form is answered with its fields; a link, or a form without any, with a word."""
        from fastmcp.client.elicitation import ElicitResult

        call = self._asking()
        if call.questions is None:
            raise Conflict("Questions are there for calls that Outlast runs.")
        url = getattr(params, "url", None)
        schema: dict[str, Any] = getattr(params, "requested_schema", None) or {}
        prompt = message if url is None else f"{message}\n{url}"
        if schema.get("properties"):
            answer = await call.questions.ask_beside(prompt, schema)
            return ElicitResult(action="accept", content=answer)
        word = await call.questions.ask_beside(prompt, {"type": "string", "enum": _WORDS})
        return ElicitResult(action=word, content={} if url is None and word == "accept" else None)

    def _asking(self) -> RunningCall:
        """The call that asks: newer servers ask within it, older ones over the connection that all calls share."""
        here = current_call.get()
        if here is not None and here in self.running:
            return here
        if len(self.running) != 1:
            raise Conflict(_SEVERAL)
        return self.running[0]
