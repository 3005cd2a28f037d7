"""What handles on sessions, turns and messages need to do their work."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from outlast.events.signals import Signals
from outlast.sessions.delete import Deletions
from outlast.sessions.inbox import Limits
from outlast.sessions.log_reader import LogPages
from outlast.sessions.output import StoredOutput
from outlast.sessions.shown import Shown
from outlast.store.database import Database
from outlast.store.files import FileStore
from outlast.tools.secrets import Secrets


@dataclass(frozen=True, slots=True)
class Services:
    """One per runtime. `models` is the allow-list of models that sessions and messages may name."""

    database: Database
    files: FileStore
    signals: Signals
    limits: Limits
    models: frozenset[str]
    max_reader_lag: int
    output_of: Callable[[StoredOutput], Any]
    """What a program is given as the output of a turn."""
    deletions: Deletions
    pages: LogPages
    secrets: Secrets = field(default_factory=Secrets)
    is_money_shown: bool = True
    check_overrides: Callable[[], None] = lambda: None
    """Refuses what was set for the agent where its turns do not see it."""

    @property
    def shown(self) -> Shown:
        return Shown(self.secrets, self.is_money_shown)
