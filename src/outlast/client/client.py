"""`Client`: a server's sessions, tasks and events for a program of your own."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from outlast.client.connection import Connection
from outlast.client.connections import Connections
from outlast.client.files import Files
from outlast.client.keys import Keys
from outlast.client.schedules import Schedules
from outlast.client.sessions import Sessions
from outlast.client.streams import FeedStream
from outlast.client.tasks import Tasks
from outlast.client.webhooks import Webhooks
from outlast.wire.about import AgentAnswer, MeAnswer, PauseAnswer, ToolAnswer, UsageReportAnswer
from outlast.wire.connection import RekeyedAnswer
from outlast.wire.forms import ListOf


class Client:
    """Talks with the server at a URL: the same nouns as the library. Use it in `async with`.

    After the first answer it bears with a server that is away (a restart, a cut line) for `patience` seconds: reads,
    streams, messages and whatever else is done once are asked for again. Problems are the library's errors.
    """

    def __init__(self, url: str, token: str | None = None, *, patience: float = 60.0) -> None:
        self._connection = Connection(url, token, patience=patience)
        self.url = self._connection.url
        self.sessions = Sessions(self._connection)
        self.tasks = Tasks(self._connection)
        self.schedules = Schedules(self._connection)
        self.connections = Connections(self._connection)
        self.files = Files(self._connection)
        self.keys = Keys(self._connection)
        self.webhooks = Webhooks(self._connection)

    def events(
        self,
        *,
        after: str | None = None,
        sessions: Sequence[str] = (),
        outputs: Sequence[str] = (),
        types: Sequence[str] = (),
    ) -> FeedStream:
        """What changes in all your sessions, and everything of those in `sessions`, as `(cursor, event)`.

        From the beginning, from a cursor, or with `after="now"` what comes next. A session may be asked for from a
        position: `ses_…:4013`, `ses_…:now`; the output of tasks likewise, which comes as `task.output`:
        `outputs=["tsk_…:12518", "tsk_…:end"]`. Use it in `async with`.
        """
        return FeedStream(self._connection, after=after, sessions=sessions, outputs=outputs, types=types)

    async def me(self) -> MeAnswer:
        """Who the caller is to the server, what it may do, and the server's version, features and limits."""
        return MeAnswer.model_validate(await self._connection.get("/v1/me"))

    async def usage(self, owner_id: str | None = None) -> UsageReportAnswer:
        """What was used today and this week, and how much of the limit that is; of another owner, for admins."""
        return UsageReportAnswer.model_validate(await self._connection.get("/v1/usage", owner_id=owner_id))

    async def rekey_connections(self) -> RekeyedAnswer:
        """Encrypt the connections of all owners with the server's first key; for admins."""
        answer = await self._connection.ask("POST", "/v1/connections/rekey", is_repeatable=True)
        return RekeyedAnswer.model_validate(answer)

    async def paused(self) -> PauseAnswer:
        """Whether the server starts new work; for admins."""
        return PauseAnswer.model_validate(await self._connection.get("/v1/pause"))

    async def pause(self) -> PauseAnswer:
        """Let the server start nothing new, over restarts too; everything is accepted, and what runs goes on."""
        return PauseAnswer.model_validate(await self._connection.ask("POST", "/v1/pause"))

    async def unpause(self) -> PauseAnswer:
        """Let it start what waited meanwhile."""
        return PauseAnswer.model_validate(await self._connection.ask("DELETE", "/v1/pause"))

    async def agents(self) -> list[AgentAnswer]:
        """The agents that sessions can have, and the models they may ask for."""
        return ListOf[AgentAnswer].model_validate(await self._connection.get("/v1/agents")).items

    async def tools(self) -> list[ToolAnswer]:
        """The tools of the agents, as a model is told of them."""
        return ListOf[ToolAnswer].model_validate(await self._connection.get("/v1/tools")).items

    async def check(self) -> None:
        """Raises `StoreUnavailable` while the server's database or files cannot be used, `NoWorkers` if none lives."""
        await self._connection.ask("GET", "/readyz", is_repeatable=False)

    async def login_link(self) -> str:
        """A link that opens the server's page in a browser, once, within ten minutes."""
        answer = await self._connection.ask("POST", "/v1/login/links")
        return f"{self.url}/#token={answer['token']}"

    async def close(self) -> None:
        await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
