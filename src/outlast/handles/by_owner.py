"""What an `Outlast` gives out: the handles of an owner, and those of the default owner of a single-user process."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from outlast.agents.output import StoredOutput
from outlast.clock import Clock
from outlast.handles import usage
from outlast.handles.completions import Completions
from outlast.handles.connections import Connections, Rekeyed, rekey
from outlast.handles.feed import OwnerStream
from outlast.handles.files import Files
from outlast.handles.keys import Keys
from outlast.handles.schedules import Schedules
from outlast.handles.services.services import Services
from outlast.handles.sessions import Sessions
from outlast.handles.tasks import Tasks
from outlast.handles.usage import UsageReport
from outlast.handles.webhooks.webhooks import Webhooks
from outlast.handles.webhooks.webhooks import rekey as rekey_webhooks
from outlast.ids import OwnerId, SessionId
from outlast.outgoing.addresses import Network
from outlast.settings import Settings
from outlast.values.sealing import Sealing

LOCAL_OWNER = OwnerId("local")


def _as_json(_: str, stored: StoredOutput) -> Any:
    return stored.value


class ByOwner(ABC):
    """Each handle is made anew when it is asked for, and is good for as long as the runtime is open."""

    settings: Settings
    _clock: Clock
    _sealing: Sealing | None
    """None: no connection and no webhook can be kept."""
    _allowed: Sequence[Network]
    """Networks that webhooks may reach beside the public ones."""

    @abstractmethod
    def _open(self) -> Services:
        """Raises `NotStarted` while it is not open."""

    @property
    def sessions(self) -> Sessions:
        """The sessions of the default owner of a single-user process."""
        return self.owned_by(LOCAL_OWNER)

    def owned_by(self, owner_id: str, *, as_json: bool = False, with_money: bool = True) -> Sessions:
        """The sessions of an owner. `as_json`: outputs of turns as they are stored, not as their agent's own type.

        `with_money=False`: as a tenant may see them, without what anything cost.
        """
        services = replace(self._open(), is_money_shown=with_money)
        services = replace(services, output_of=_as_json) if as_json else services
        return Sessions(services, OwnerId(owner_id))

    @property
    def tasks(self) -> Tasks:
        """The background tasks of the default owner."""
        return self.tasks_of(LOCAL_OWNER)

    def tasks_of(self, owner_id: str, *, with_money: bool = True) -> Tasks:
        """The background tasks of an owner. `with_money=False`: without what anything cost."""
        services = replace(self._open(), is_money_shown=with_money)
        return Tasks(services.database, services.signals, OwnerId(owner_id), services.shown, self.completions)

    @property
    def schedules(self) -> Schedules:
        """The schedules of the default owner."""
        return self.schedules_of(LOCAL_OWNER)

    def schedules_of(self, owner_id: str) -> Schedules:
        """The schedules of an owner. A session makes one: `session.schedule(...)`."""
        return Schedules(self._open(), OwnerId(owner_id), self._clock)

    @property
    def completions(self) -> Completions:
        """Ends the operations elsewhere of all owners; whoever uses it has asked who may."""
        services = self._open()
        return Completions(services.database, services.files, services.secrets)

    def events_of(
        self,
        owner_id: str,
        *,
        after: str | None = None,
        sessions: Sequence[SessionId | str] = (),
        outputs: Sequence[str] = (),
        follow: bool = True,
        with_money: bool = True,
        says_live: bool = False,
    ) -> OwnerStream:
        """What changes in all sessions of an owner, everything in those asked for, and the output of tasks asked for.

        A session may be asked for from a position: `ses_…:4013` is the number of an event, `ses_…:now`. Output
        likewise: `tsk_…:12518`, `tsk_…:end`. Use it in `async with`. `with_money=False`: as a tenant may see it,
        without what anything cost. `says_live`: `stream.live` comes when all that was there has been told.
        """
        services = replace(self._open(), is_money_shown=with_money)
        return OwnerStream(
            services.database,
            services.signals,
            OwnerId(owner_id),
            after=after,
            sessions=sessions,
            outputs=outputs,
            follow=follow,
            show=services.pages.shown(services.shown),
            pages=services.pages,
            max_lag=services.max_reader_lag,
            says_live=says_live,
        )

    async def usage_of(self, owner_id: str) -> UsageReport:
        """What an owner has used today and this week, and how much of its daily limit that is."""
        return await usage.report(
            self._open().database, OwnerId(owner_id), now=self._clock.now(), limit=self.settings.daily_cost_limit
        )

    @property
    def files(self) -> Files:
        """The files of the default owner."""
        return self.files_of(LOCAL_OWNER)

    def files_of(self, owner_id: str) -> Files:
        """An owner's files, by the ids that messages, calls, tasks and events tell."""
        return Files(self._open(), OwnerId(owner_id))

    @property
    def connections(self) -> Connections:
        """The connections of the default owner."""
        return self.connections_of(LOCAL_OWNER)

    def connections_of(self, owner_id: str) -> Connections:
        """An owner's credentials for providers, which tools ask for with `outlast.connection(provider)`."""
        return Connections(self._open().database, self._sealing, OwnerId(owner_id))

    async def rekey_connections(self) -> Rekeyed:
        """Seal connections and webhooks' secrets of all owners with the first encryption key; safe to repeat."""
        database = self._open().database
        done = await rekey(database, self._sealing)
        assert self._sealing is not None, "else that was refused"
        moved, unreadable = await rekey_webhooks(database, self._sealing)
        return Rekeyed(done.moved + moved, done.unreadable + unreadable)

    @property
    def webhooks(self) -> Webhooks:
        """The webhooks of the default owner."""
        return self.webhooks_of(LOCAL_OWNER)

    def webhooks_of(self, owner_id: str) -> Webhooks:
        """Where an owner is told of ends and needs; those made with `is_for_all` hear of all owners."""
        return Webhooks(self._open().database, self._sealing, OwnerId(owner_id), self._allowed)

    @property
    def keys(self) -> Keys:
        """The API keys of all owners."""
        services = self._open()
        return Keys(services.database, self._clock, services.signals)
