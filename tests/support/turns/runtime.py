"""A runtime for tests: a real database, and waits so short that no test notices them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic_ai import Agent

from outlast import Event, Outlast, Session, Settings
from outlast.agents.resource import LoadResource
from outlast.clock import Clock
from outlast.ids import TaskId
from outlast.limits import Limits
from outlast.store.repositories.inputs import Input, InputKind
from outlast.testing import ScriptedModel, Steps
from outlast.transitions.turns import inbox
from tests.support.stores.store import under

FAST: Mapping[str, Any] = {
    "durability": "normal",
    "coalesce": timedelta(milliseconds=2),
    "model_backoff": timedelta(milliseconds=1),
    "stop_grace": timedelta(milliseconds=40),
    "abandon_after": timedelta(milliseconds=60),
    "drain": timedelta(milliseconds=50),
}


def scripted(*steps: Any) -> ScriptedModel:
    return ScriptedModel(list(steps))


class Runtime:
    """Opens runtimes on one database: `async with runtime(scripted("Hello")) as outlast`."""

    def __init__(self, database: Path | str, *, files: str | None = None) -> None:
        self.database = database
        self.files = Path(files or f"{database}.files")
        self._settings: Mapping[str, Any] = FAST if files is None else {**FAST, "files": files}

    @property
    def folder(self) -> Path:
        """Where its files are, and the database itself if it is one."""
        return self.files.parent

    def __call__(
        self,
        model: ScriptedModel | Steps | None = None,
        *,
        tools: Sequence[Any] = (),
        agent: Agent[Any, Any] | Mapping[str, Agent[Any, Any]] | None = None,
        deps: Any = None,
        models: Any = None,
        clock: Clock | None = None,
        resources: Mapping[str, LoadResource] | None = None,
        summary_model: Any = None,
        title_model: Any = None,
        **settings: Any,
    ) -> Outlast[Any, Any]:
        if agent is None:
            chosen = model if isinstance(model, ScriptedModel) else ScriptedModel(model or ["Done."])
            agent = Agent(chosen, tools=tools, name="agent")
        return Outlast(
            agent,
            database=self.database,
            deps=deps,
            models=models,
            clock=clock,
            resources=resources,
            summary_model=summary_model,
            title_model=title_model,
            settings=Settings(**{**self._settings, **settings}),
        )


async def events_of(session: Session, *types: str) -> list[Event]:
    """The events that are there now, all of them or those of some types."""
    async with session.events(follow=False) as stream:
        return [event async for event in stream if not types or event.type in types]


async def event_types(session: Session) -> list[str]:
    return [event.type for event in await events_of(session)]


async def wait_for_event(session: Session, type_: str) -> Event:
    """The first event of a type, now or when it comes."""
    async with session.events() as stream:
        async for event in stream:
            if event.type == type_:
                return event
    raise AssertionError(f"the stream ended without {type_}")


async def wake(outlast: Outlast[Any, Any], session: Session, text: str, *, limits: Limits | None = None) -> Input:
    """What the end of a task does: an input of the runtime's own."""
    return await outlast.database.transaction(
        lambda unit: inbox.notify(
            under(limits or Limits(), unit), session.id, InputKind.WAKE, text, task_id=TaskId("task_test")
        ),
        name="wake",
    )
