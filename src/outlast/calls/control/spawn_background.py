"""`spawn_background`: the model sets a tool going on purpose and goes on without it."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import Field, ValidationError
from pydantic_ai import RunContext, Tool
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.toolsets import ToolsetTool

from outlast.calls.call import RunningCall
from outlast.calls.control.parts import ControlParts, this_call
from outlast.calls.control.schedules import made, spawning_schedule, told
from outlast.calls.narration import Narration
from outlast.errors import Forbidden, InvalidInput, TooManyTasks
from outlast.store.database import retry_while_unavailable
from outlast.store.repositories.stored_task import Task, WakePolicy
from outlast.tool_hints import Wake, hints, hints_of
from outlast.transitions.tasks import spawning
from outlast.transitions.tasks.spawning import Spawn
from outlast.values import clean

_BEGINS = "It is set going as task {task_id}. Its end will be told to you here: go on with other work or end your turn."
_WAITS = (
    "It waits as task {task_id}, number {place} of those that wait for a place, and begins by itself. Its end will "
    "be told to you here: go on with other work or end your turn."
)
_SILENT = "Its end will not be told to you: look with check_background."
_FAULTS = 5


def spawn_background(parts: ControlParts) -> Tool[Any]:
    """Run again after a crash it finds the task that it has made: there is one for each call."""

    async def spawn_background(
        ctx: RunContext[Any],
        tool: Annotated[str, Field(description="The name of one of your other tools.")],
        args: Annotated[dict[str, Any], Field(description="Its arguments, as in a call of it.")],
        title: Annotated[str | None, Field(description="A few words for people.")] = None,
        group: Annotated[
            str | None, Field(description="Tasks of one group wake you once, when all of them have ended.")
        ] = None,
        wake: Annotated[Wake | None, Field(description="silent: do not wake you at its end.")] = None,
        schedule: Annotated[
            str | None, Field(description="When, instead of now: as `when` of the tool schedule.")
        ] = None,
        zone: Annotated[str, Field(description="IANA zone of its cron.")] = "UTC",
        wake_if: Annotated[
            dict[str, Any] | None,
            Field(
                description="With a cron: a monitor that wakes you only if its result meets this. {kind: changed | "
                "equals | matches | above | below, value, path such as 'jobs[0].state'}"
            ),
        ] = None,
    ) -> dict[str, Any]:
        """Start a tool in the background and get its task at once: for work whose result you need later."""
        call = this_call()
        found = await _checked(ctx, parts, call, tool, args)
        said = hints_of(found.tool_def.metadata)
        title, group = call.secrets.mask(title), call.secrets.mask(group)
        narration = Narration(tool, said, args, call.secrets.mask).phases
        if schedule is not None:
            spec: dict[str, Any] = {
                "args": args,
                "wake": wake or said.wake or WakePolicy.ON_TERMINAL.value,
                "group": group or said.group,
                "may_run_again": said.may_run_again,
                "deadline_seconds": None if said.deadline is None else said.deadline.total_seconds(),
                "progress_seconds": None if said.progress_deadline is None else said.progress_deadline.total_seconds(),
                "max_attempts": said.max_attempts,
                "narration": dict(narration),
            }
            new = spawning_schedule(call, tool, spec, when=schedule, zone=zone, title=title, condition=wake_if)
            return told(await made(parts, call, new))
        if wake_if is not None:
            raise ToolFailed("wake_if is of a monitor: give it a cron expression as `schedule` too.")
        wanted = Spawn(
            tool,
            args,
            title=title,
            group=group or said.group,
            wake=WakePolicy(wake or said.wake or WakePolicy.ON_TERMINAL),
            key=f"call:{call.key}",
            turn_id=call.turn_id,
            may_run_again=said.may_run_again,
            deadline=said.deadline or parts.call_deadline,
            progress_deadline=said.progress_deadline,
            max_attempts=said.max_attempts,
            narration=narration,
        )
        return _handle(await _spawned(parts, call, wanted))

    return Tool(spawn_background, takes_ctx=True, metadata=hints(idempotent=True, budget=None))


async def _checked(
    ctx: RunContext[Any], parts: ControlParts, call: RunningCall, name: str, args: Mapping[str, Any]
) -> ToolsetTool[Any]:
    """The tool, if it may be spawned and these arguments fit it: judged by its own validator, as in a call of it."""
    manager = ctx.tool_manager
    assert manager is not None
    assert manager.tools is not None
    if name in parts.names:
        raise ToolFailed(f"{name!r} cannot be spawned: it is about background work itself. Call it directly.")
    found = manager.tools.get(name)
    if found is None or found.tool_def.kind == "output":
        known = [each for each, tool in manager.tools.items() if tool.tool_def.kind != "output"]
        raise ToolFailed(spawning.unknown_tool(name, [each for each in known if each not in parts.names]))
    asked = ToolCallPart(tool_name=name, args=dict(args), tool_call_id=call.call_id)
    try:
        await manager.validate_tool_call(asked, wrap_validation_errors=False)
    except ValidationError as exc:
        raise ToolFailed(_faults(name, exc)) from exc
    except ModelRetry as exc:
        raise ToolFailed(f"The arguments of {name!r} do not fit: {clean.words_of(exc)}") from exc
    return found


def _faults(name: str, exc: ValidationError) -> str:
    errors = exc.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}" for each in errors[:_FAULTS]]
    more = [f"and {len(errors) - _FAULTS} more"] if len(errors) > _FAULTS else []
    return f"Nothing was spawned: the arguments of {name!r} do not fit. " + "; ".join([*lines, *more])


async def _spawned(parts: ControlParts, call: RunningCall, wanted: Spawn) -> Task:
    spawn = partial(spawning.spawn, session_id=call.session_id, wanted=wanted, owner_id=call.owner_id)
    try:
        spawning.check(title=wanted.title, group=wanted.group)
        return await retry_while_unavailable(partial(parts.database.transaction, spawn, name="spawn"))
    except (Forbidden, InvalidInput, TooManyTasks) as exc:
        raise ToolFailed(exc.message) from exc


def _handle(task: Task) -> dict[str, Any]:
    handle: dict[str, Any] = {"type": "background", "task_id": task.id, "tool": task.tool, "title": task.title}
    words = _BEGINS if task.place is None else _WAITS
    message = words.format(task_id=task.id, place=task.place)
    if task.wake is WakePolicy.SILENT:
        message = f"{message.split(' Its end')[0]} {_SILENT}"
    return {**handle, **({} if task.place is None else {"place": task.place}), "message": message}
