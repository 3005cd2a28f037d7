"""What a call's end says of the operations elsewhere that its tool has opened: they go on, each as a task."""

from dataclasses import replace
from typing import Any, cast

from pydantic_ai import ToolReturn

from outlast.calls.call import RunningCall

_GOES_ON = "It goes on elsewhere, as task {ids}. Its end will be told to you here."
_LEFT_OPEN = (
    "Task {ids} stays open until its completion or deadline, because the request may have gone out; its end will be "
    "told to you here."
)


def with_operations(call: RunningCall, value: Any) -> Any:
    """The tool's own value as it is told, with the ids of the tasks if there are any."""
    if not call.operations:
        return value
    if isinstance(value, ToolReturn):
        returned = cast(ToolReturn[Any], value)
        return replace(returned, return_value=with_operations(call, returned.return_value))
    task_ids = [each.task_id for each in call.operations]
    return {
        "type": "external",
        "task_ids": task_ids,
        "result": value,
        "message": _GOES_ON.format(ids=", ".join(task_ids)),
    }


def left_open(call: RunningCall) -> str | None:
    """What is said with the failure of the call."""
    task_ids = [each.task_id for each in call.operations]
    return _LEFT_OPEN.format(ids=", ".join(task_ids)) if task_ids else None
