"""What every attempt on a worker shares."""

from collections.abc import Mapping
from contextvars import Context
from dataclasses import dataclass, field

from pydantic_ai.models import Model

from outlast.agents.host import AgentHost
from outlast.agents.resource import LoadResource
from outlast.calls.call import CallThreads
from outlast.calls.control.toolset import ControlToolset
from outlast.calls.control.turn_waits import TurnWaits
from outlast.events.signals import Signals
from outlast.ids import WorkerId
from outlast.runs.call_parts import CallParts
from outlast.runs.policy import LoopPolicy
from outlast.store.database import Database
from outlast.store.files.file_store import FileStore
from outlast.values.secrets import Secrets


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """The parts of a worker that its attempts use. They outlive every attempt; whoever made them closes them."""

    database: Database
    files: FileStore
    signals: Signals
    hosts: Mapping[str, AgentHost]
    policy: LoopPolicy
    secrets: Secrets
    threads: CallThreads
    calls: CallParts
    control: ControlToolset
    instructions: str | None
    resources: Mapping[str, LoadResource] = field(default_factory=dict[str, LoadResource])
    """By kind of what sessions are bound to: how it is loaded for a turn."""
    summary_model: Model | str | None = None
    """Makes summaries; None: the model of the turn."""
    title_model: Model | str | None = None
    waits: TurnWaits = field(default_factory=TurnWaits)
    """Which of its turns only wait: others may have their places."""
    context: Context = field(default_factory=Context)
    """The context variables that attempts begin with, such as what `Agent.override` has set."""

    @property
    def worker_id(self) -> WorkerId:
        """The present name of this worker. It stands in one place: whoever renames it changes that alone."""
        return self.calls.worker_id
