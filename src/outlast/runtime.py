"""The composition root: `Outlast(agent, ...)` wires everything, and is the only place that knows all parts."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self

from pydantic_ai import Agent, ToolDefinition
from pydantic_ai.models import Model
from typing_extensions import TypeVar

from outlast.agents import stored_tool
from outlast.agents.declared import Models, declare
from outlast.agents.host import AgentHost, DepsFactory
from outlast.agents.output import StoredOutput
from outlast.agents.record import AgentRecorder
from outlast.agents.resource import LoadResource
from outlast.agents.surroundings import Overrides, check_needs_no_deps
from outlast.assembly import policies, work
from outlast.assembly.place import Place
from outlast.calls.control.toolset import INSTRUCTIONS
from outlast.clock import Clock, SystemClock
from outlast.containment import ForeignTasks
from outlast.duties.deletions import Deletions
from outlast.duties.due_schedules import DueSchedules
from outlast.duties.retention import Retention
from outlast.duties.webhooks import WebhookSender
from outlast.engines.kept_secrets import KeptSecrets
from outlast.engines.outbox import EngineOutbox, Listener
from outlast.errors import NotFound, NotStarted, NoWorkers
from outlast.handles.by_owner import LOCAL_OWNER, ByOwner
from outlast.handles.services.known_agents import KnownAgent, KnownAgents
from outlast.handles.services.known_tools import KnownTools
from outlast.handles.services.log_reader import LogPages
from outlast.handles.services.orphans import Orphans
from outlast.handles.services.services import Services
from outlast.observe import logs
from outlast.outgoing import addresses
from outlast.outgoing.client import OutgoingClient
from outlast.runs.worker import Worker
from outlast.settings import Settings, from_environment
from outlast.store.database import Database
from outlast.store.files.file_store import FileStore
from outlast.store.repositories import agent_records, agents, pauses
from outlast.store.repositories import sessions as session_rows
from outlast.store.repositories.open_work import OpenWork, open_work
from outlast.store.repositories.pauses import Pause
from outlast.transitions import pause
from outlast.values.secrets import Secrets

DepsT = TypeVar("DepsT", default=Any)
OutputT = TypeVar("OutputT", default=Any)


class Outlast(ByOwner, Generic[DepsT, OutputT]):
    """A durable runtime for agents: `async with Outlast(agent, database="app.db") as outlast`.

    One agent, called `name`, else as it calls itself, else `agent`; or several by name: `Outlast({"desk": desk,
    "research": research})`. Sessions choose one; the first is that of those that do not.

    `deps` is called with owner, session, turn and the agent's name, on the worker that runs it, and gives an async
    context manager; what it yields is never stored. `models` is the allow-list of models that sessions and messages
    may ask for by name. Both are for all agents, or are mappings by agent. `instructions` tell the model about
    background work; give your own or None. `resources` are functions by the kind of what sessions are bound to: each is
    called for every turn of such a session, and gives a text of what the resource is like, which its model sees.
    `summary_model` shortens the oldest turns of long sessions; without one the model of the turn does. `title_model`
    makes titles; without one they are the first words of the first message.
    """

    def __init__(
        self,
        agent: Agent[DepsT, OutputT] | Mapping[str, Agent[Any, OutputT]],
        *,
        database: str | Path = "outlast.db",
        deps: DepsFactory | Mapping[str, DepsFactory] | None = None,
        name: str | None = None,
        models: Models | Mapping[str, Models] | None = None,
        instructions: str | None = INSTRUCTIONS,
        resources: Mapping[str, LoadResource] | None = None,
        summary_model: Model | str | None = None,
        title_model: Model | str | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings or from_environment()
        self._agents = declare(agent, name=name, models=models, deps=deps)
        self._instructions = instructions
        self._resources = dict(resources or {})
        self._summary_model, self._title_model = summary_model, title_model
        self._clock = clock or SystemClock()
        self._place = Place(database, self.settings, self._clock)
        self._stack: AsyncExitStack | None = None
        self._services: Services | None = None
        self.secrets = Secrets()
        """Values that are masked wherever something is stored or shown: `secrets.add(value)`, as tools do with
        `outlast.secret(value)`."""
        self._sealing = policies.sealing(self.settings)
        self._allowed = addresses.networks(self.settings.allowed_networks)
        self._hosts: Mapping[str, AgentHost] = {}
        self._listeners: list[Listener] = []
        self.public_url = self.settings.public_url
        """Where others reach this server, for the completion of operations elsewhere; None if nobody has said it."""

    @property
    def agents(self) -> Mapping[str, Sequence[str]]:
        """The agents of this process by name, each with the models that sessions may ask for."""
        return {name: sorted(each.models) for name, each in self._agents.items()}

    async def known_agents(self) -> Sequence[KnownAgent]:
        """All agents that sessions can have: those of this process, and those that workers elsewhere have recorded."""
        return await self._open().agents.list()

    async def tools_of(self, agent: str) -> Sequence[ToolDefinition]:
        """The tools of an agent: as it declares them here, else as a worker that has it last recorded them.

        Raises `NotFound` for an agent that nobody has ever had.
        """
        services = self._open()
        if agent in self._hosts:
            return await self._hosts[agent].declared_tools()
        if await services.agents.find_models(agent) is None:
            raise NotFound((await services.agents.unknown(agent)).message)
        stored = await services.database.read(lambda connection: agent_records.tools_of(connection, agent))
        return [stored_tool.load(each) for each in stored]

    async def tool_of(self, agent: str, tool: str) -> ToolDefinition:
        """One of them: its name, description, JSON schema and metadata, of which `outlast.tool_hints` reads hints.

        Raises `NotFound` if the agent has none of that name, as far as is known.
        """
        found = {each.name: each for each in await self.tools_of(agent)}
        if tool not in found:
            raise NotFound(f"The agent {agent!r} has no tool {tool!r}: use one of {sorted(found)}.")
        return found[tool]

    def listen(self, listener: Listener) -> None:
        """Be told of every committed event of this process. A listener that fails harms nothing."""
        self._listeners.append(listener)

    async def open_work(self) -> OpenWork:
        """How much waits and runs, over all owners."""
        return await self._open().database.read(lambda connection: open_work(connection, self._clock.now()))

    async def pause(self, *, by: str = LOCAL_OWNER) -> Pause:
        """Start nothing new, over restarts too, until `unpause`. Everything is accepted, and what runs goes on."""
        return await self._open().database.transaction(lambda unit: pause.begin(unit, by=by), name="pause")

    async def unpause(self) -> bool:
        """Start what waited meanwhile. False when there was no pause."""
        return await self._open().database.transaction(pause.end, name="unpause")

    async def paused(self) -> Pause | None:
        """Who paused the work and since when; None while it goes on."""
        return await self._open().database.read(pauses.find)

    async def remove_old(self) -> Mapping[str, int]:
        """Remove now what was kept for its time, as a duty does by itself: how many of each kind went."""
        services = self._open()
        return await Retention(services.database, policies.kept(self.settings), services.deletions).run()

    async def check(self) -> int:
        """How many workers are alive; raises `NoWorkers` if none is.

        Raises `StoreUnavailable` while the database does not take commits or a file of it is gone, or no file is kept.
        """
        services = self._open()
        await services.database.transaction(session_rows.check_writable, name="check")
        await self._place.check()
        await services.files.check_ready()
        living = await services.database.read(agents.of_the_living, is_single=True)
        if not living:
            raise NoWorkers("0 workers alive: what is sent is kept, and nothing is started. Start `outlast worker`.")
        return len(living)

    @property
    def path(self) -> Path:
        """The file of an embedded database, or the name under which a server of this one leaves its files."""
        return self._place.path

    @property
    def is_embedded(self) -> bool:
        """One process and a SQLite file; else PostgreSQL, and as many processes as there are."""
        return self._place.is_embedded

    @property
    def is_running(self) -> bool:
        return self._services is not None

    @property
    def database(self) -> Database:
        return self._open().database

    async def upgrade(self) -> None:
        """Bring the database to the schema of this version, as every start does, and run nothing."""
        async with AsyncExitStack() as stack:
            await self._place.open(stack)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await self._start(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._stack, self._services = self._stack, None, None
        if stack is not None:
            await stack.aclose()

    async def _start(self, stack: AsyncExitStack) -> None:
        logs.configure_unless_done(mask=self.secrets.mask)
        for name, each in self._agents.items():
            if self.settings.run_work and each.deps is None:
                check_needs_no_deps(name, each.agent)
        database, signals = await self._place.open(stack)
        files = FileStore(self.settings.files or f"{self.path}.files")
        await files.check()
        stack.enter_context(ForeignTasks())
        outbox = EngineOutbox(signals)
        outbox.listeners = self._listeners
        database.limits, database.secrets = policies.limits(self.settings), self.secrets
        database.attach(outbox)
        self._hosts = work.hosts(self._agents, self.settings)
        parts = work.worker_parts(
            stack,
            database,
            files,
            outbox,
            settings=self.settings,
            clock=self._clock,
            hosts=self._hosts,
            secrets=self.secrets,
            instructions=self._instructions,
            public_url=lambda: self.public_url,
            resources=self._resources,
            summary_model=self._summary_model,
            title_model=self._title_model,
        )
        deletions = Deletions(database, files)
        webhooks = WebhookSender(database, OutgoingClient(allowed=self._allowed), self._sealing)
        stack.push_async_callback(webhooks.close)
        known_agents = KnownAgents(database, self.agents)
        known_tools = KnownTools(database, self._hosts, runs_work=self.settings.run_work)
        orphans = Orphans(database, known_agents, known_tools, set(self._agents) if self.is_embedded else None)
        due = DueSchedules(database, outbox.signals, self._clock, orphans.why)
        engine = outbox.engine = work.engine(
            Worker(parts), self._place, outbox, deletions, webhooks, due, settings=self.settings, clock=self._clock
        )
        self._services = Services(
            database,
            files,
            outbox.signals,
            policies.limits(self.settings),
            known_agents,
            self.settings.max_reader_lag,
            self._output_of,
            deletions,
            LogPages(database),
            parts.secrets,
            tools=known_tools,
            check_overrides=self._overrides(),
        )
        if self._sealing is not None:
            kept = KeptSecrets(database, outbox.signals, self.secrets, self._sealing)
            stack.push_async_callback(kept.close)
            await kept.start()
        stack.push_async_callback(self._services.pages.close)
        stack.push_async_callback(engine.close)
        for store in (database, files):
            stack.callback(store.begin_shutdown, self.settings.drain.total_seconds())
        if self.settings.run_work:
            recorder = AgentRecorder(database, self._hosts, own=parts.control.names)
            stack.push_async_callback(recorder.close)
            await recorder.start()
        await engine.start()
        stack.push_async_callback(deletions.close)
        await deletions.start()

    def _output_of(self, agent: str, stored: StoredOutput) -> Any:
        """As the agent declares it; of one that is not here, as JSON."""
        host = self._hosts.get(agent)
        return stored.value if host is None else host.output_types.load(stored)

    def _overrides(self) -> Callable[[], None]:
        found = [Overrides(each.agent) for each in self._agents.values()]

        def check() -> None:
            for each in found:
                each.check()

        return check

    def _open(self) -> Services:
        if self._services is None:
            raise NotStarted("Outlast is not running: use it in `async with Outlast(...) as outlast`.")
        return self._services
