"""What runs attempts in this process: the agents' hosts, the worker with all it needs, and the engine around it."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from pydantic_ai.models import Model

from outlast import ids
from outlast.agents.declared import DeclaredAgent
from outlast.agents.host import AgentHost
from outlast.agents.resource import LoadResource
from outlast.agents.surroundings import surrounding_context
from outlast.assembly.place import Place
from outlast.assembly.policies import kept, loop_policy, sealing
from outlast.calls.call import CallThreads
from outlast.calls.control.parts import ControlParts
from outlast.calls.control.toolset import control_toolset
from outlast.calls.control.turn_waits import TurnWaits
from outlast.calls.questions import QuestionSource
from outlast.calls.view import Viewer
from outlast.calls.within.channel import ChannelHome
from outlast.calls.within.connection import ConnectionSource
from outlast.calls.within.external import OperationSource
from outlast.clock import Clock
from outlast.duties import duty
from outlast.duties.deletions import Deletions
from outlast.duties.due_schedules import DueSchedules
from outlast.duties.duty import Duty
from outlast.duties.retention import Retention
from outlast.duties.standing import standing
from outlast.duties.webhooks import WebhookSender
from outlast.engines.embedded import EmbeddedEngine
from outlast.engines.outbox import EngineOutbox
from outlast.outgoing.addresses import networks
from outlast.runs.call_parts import CallParts
from outlast.runs.parked import ParkedCalls
from outlast.runs.worker import Places, Worker
from outlast.runs.worker_parts import WorkerParts
from outlast.settings import Settings
from outlast.store.database import Database
from outlast.store.files.file_store import FileStore
from outlast.store.files.session_files import SessionFiles
from outlast.values.secrets import Secrets

if TYPE_CHECKING:
    from outlast.engines.distributed import AcceptingEngine


def hosts(agents: Mapping[str, DeclaredAgent], settings: Settings) -> Mapping[str, AgentHost]:
    """One of each agent, not entered yet."""
    return {
        name: AgentHost(
            each.agent,
            each.deps,
            each.models,
            longest_call=settings.call_deadline + settings.request_deadline,
            is_one_of_several=len(agents) > 1,
        )
        for name, each in agents.items()
    }


def worker_parts(
    stack: AsyncExitStack,
    database: Database,
    files: FileStore,
    outbox: EngineOutbox,
    *,
    settings: Settings,
    clock: Clock,
    hosts: Mapping[str, AgentHost],
    secrets: Secrets,
    instructions: str | None,
    public_url: Callable[[], str | None],
    resources: Mapping[str, LoadResource],
    summary_model: Model | str | None,
    title_model: Model | str | None,
) -> WorkerParts:
    """What is opened here, and the `hosts`, `stack` closes.

    `public_url` is asked each time: a server knows its address only when it listens.
    """
    signals = outbox.signals
    threads = CallThreads(settings.thread_limit, thread_name_prefix="outlast-tool")
    stack.callback(threads.shutdown, wait=False, cancel_futures=True)
    for host in hosts.values():
        stack.push_async_callback(host.close)
    viewer, loop, waits = Viewer(files), asyncio.get_running_loop(), TurnWaits()
    return WorkerParts(
        database=database,
        files=files,
        signals=signals,
        hosts=hosts,
        policy=loop_policy(settings),
        secrets=secrets,
        threads=threads,
        calls=CallParts(
            ChannelHome(database, files, secrets),
            viewer,
            ParkedCalls(database, signals, viewer, clock, abandon_after=settings.abandon_after),
            ids.worker_id(),
            max_open_tasks=settings.max_open_tasks_per_session,
            deadline=settings.call_deadline,
            connections=ConnectionSource(database, sealing(settings), clock, loop, settings.connection_urls),
            external=OperationSource(
                database, public_url, settings.call_deadline, settings.max_open_tasks_per_session, loop
            ),
            questions=QuestionSource(database, signals, loop),
            networks=networks(settings.allowed_networks),
            files=SessionFiles(database, files),
        ),
        control=control_toolset(ControlParts(database, files, signals, clock, settings.call_deadline, waits=waits)),
        instructions=instructions,
        resources=resources,
        context=surrounding_context(),
        summary_model=summary_model or settings.summary_model,
        title_model=title_model or settings.title_model,
        waits=waits,
    )


def engine(
    worker: Worker,
    place: Place,
    outbox: EngineOutbox,
    deletions: Deletions,
    webhooks: WebhookSender,
    due: DueSchedules,
    *,
    settings: Settings,
    clock: Clock,
) -> "EmbeddedEngine | AcceptingEngine":
    places = Places(settings.max_turns_per_worker, settings.max_tasks_per_worker)
    drain = settings.drain.total_seconds()
    parts = worker.parts
    duties = standing(
        parts.database,
        parts.signals,
        deletions,
        webhooks,
        Retention(parts.database, kept(settings), deletions),
        due=due,
        me=lambda: worker.parts.worker_id,
        runs=worker.runs,
    )
    if place.is_embedded:
        return EmbeddedEngine(worker, clock=clock, places=places, drain_seconds=drain, duties=duties)
    from outlast.duties.lost_jobs import enqueue_again
    from outlast.engines.distributed import AcceptingEngine, DistributedEngine

    if not settings.run_work:
        return AcceptingEngine()
    duties.append(Duty("enqueue lost jobs again", partial(enqueue_again, parts.database), duty.EVERY))
    return DistributedEngine(
        worker,
        place.direct,
        outbox=outbox,
        duties=duties,
        places=places,
        drain_seconds=drain,
    )
