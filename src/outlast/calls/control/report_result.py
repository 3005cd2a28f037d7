"""`report_result`: what a sub-session was asked to come to, checked when it is reported."""

from functools import partial
from typing import Annotated, Any

from pydantic import Field
from pydantic_ai import Tool
from pydantic_ai.exceptions import ToolFailed

from outlast.calls.control.parts import ControlParts, this_call
from outlast.store.database import retry_while_unavailable
from outlast.tool_hints import hints
from outlast.transitions import sub_sessions
from outlast.values import json_schema


def report_result(parts: ControlParts) -> Tool[Any]:
    """Reported again, the last result counts."""

    async def report_result(result: Annotated[Any, Field(description="What you were asked to report.")]) -> str:
        """Report the result of the work that was given to this session."""
        call = this_call()
        session_id, turn_id = call.session_id, call.turn_id
        assert turn_id is not None
        schemas = await parts.read(partial(sub_sessions.schemas_for, session_id=session_id, turn_id=turn_id))
        if not schemas:
            raise ToolFailed("No result is asked for here: answer with words.")
        faults = json_schema.faults(schemas[0], result)
        if faults:
            raise ToolFailed("It does not fit. Report it again:\n" + "\n".join(faults))
        value = call.secrets.mask(result)
        report = partial(sub_sessions.report, session_id=session_id, turn_id=turn_id, value=value)
        await retry_while_unavailable(lambda: parts.database.transaction(report, name="child.report"))
        return "Reported."

    return Tool(report_result, takes_ctx=False, metadata=hints(idempotent=True, budget=None))
