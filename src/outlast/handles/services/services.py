"""What handles on sessions, turns and messages need to do their work."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from outlast.agents.output import StoredOutput
from outlast.duties.deletions import Deletions
from outlast.events.signals import Signals
from outlast.handles.services.known_agents import KnownAgents
from outlast.handles.services.known_tools import KnownTools
from outlast.handles.services.log_reader import LogPages
from outlast.handles.services.shown import Shown
from outlast.handles.services.slices import OneAtATime
from outlast.limits import Limits
from outlast.store.database import Database
from outlast.store.files.file_store import FileStore
from outlast.values.secrets import Secrets


@dataclass(frozen=True, slots=True)
class Services:
    """One per runtime. `agents` says which there are, and which models sessions and messages may name."""

    database: Database
    files: FileStore
    signals: Signals
    limits: Limits
    agents: KnownAgents
    max_reader_lag: int
    output_of: Callable[[str, StoredOutput], Any]
    """What a program is given as the output of a turn of an agent."""
    deletions: Deletions
    pages: LogPages
    secrets: Secrets = field(default_factory=Secrets)
    is_money_shown: bool = True
    tools: KnownTools | None = None
    """The tools that can be set going in a session, by agent."""
    imports: OneAtATime = field(default_factory=OneAtATime)
    check_overrides: Callable[[], None] = lambda: None
    """Refuses what was set for an agent where its turns do not see it."""

    @property
    def shown(self) -> Shown:
        return Shown(self.secrets, self.is_money_shown)
