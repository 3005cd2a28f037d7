"""A scripted model that asks about its background work, and the answers that it got."""

from typing import Any

from pydantic_ai.messages import ModelMessage

from outlast import Session
from outlast.testing import ScriptedModel, call, tool_returns
from tests.support.logs.histories import return_of


def asks(*requests: dict[str, Any], tool: str = "survey") -> ScriptedModel:
    """Calls the tool, then at each message of the user makes the next request; `$task` is the first task's id.

    A request is a call of `check_background`, or of what `tool` in it says. Their call ids are q0, q1, ...
    """

    def steps(messages: list[ModelMessage]) -> Any:
        returns: dict[str, Any] = dict(tool_returns(messages))
        if "c1" not in returns:
            return call(tool, call_id="c1")
        if messages[-1].parts[-1].part_kind == "tool-return":
            return "Well."
        asked = sum(each.startswith("q") for each in returns)
        if asked == len(requests) or "<background_result" in str(messages[-1].parts[-1]):
            return "Well."
        task_id = returns["c1"]["task_id"]
        given = {name: task_id if value == "$task" else value for name, value in requests[asked].items()}
        return call(given.pop("tool", "check_background"), given, call_id=f"q{asked}")

    return ScriptedModel(steps)


async def answer(session: Session, call_id: str = "q0") -> Any:
    return return_of(call_id, await session.history()).content
