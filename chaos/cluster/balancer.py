"""HTTP to whichever API process answers: clients go on to the next one when one does not."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from outlast.client import Client
from outlast.client.session import Session
from outlast.errors import NoWorkers, ServerFault, StoreUnavailable, Unreachable

T = TypeVar("T")

ANSWER_SECONDS = 6.0
AWAY = (Unreachable, StoreUnavailable, ServerFault, TimeoutError)
"""No answer that says anything about what was asked: another process may have one."""
_PATIENCE = 1.0
_PAUSE_SECONDS = 0.1
_SHUNNED_SECONDS = 3.0
_PROBE_SECONDS = 1.0


class Balancer:
    """The API processes of the cluster as a load balancer shows them: who does not answer is left out for a while.

    For each owner there is a token. A session belongs to one of them, and is asked for with that one's.
    """

    def __init__(self, ports: Sequence[int], tokens: Sequence[str], chance: random.Random) -> None:
        self._clients = [
            [Client(f"http://127.0.0.1:{port}", token, patience=_PATIENCE) for token in tokens] for port in ports
        ]
        self._ports = ports
        self.troubles: Counter[str] = Counter()
        self._chance = chance
        self._shunned_until = [0.0] * len(ports)
        self._probing: list[asyncio.Task[None]] = []
        self._owner_of: dict[str, int] = {}
        self._handles: dict[tuple[str, int], Session] = {}

    @property
    def owners(self) -> int:
        return len(self._clients[0])

    def client_of(self, owner: int, at: int) -> Client:
        """At one of the processes, as one of the owners."""
        return self._clients[at][owner]

    def stranger(self, at: int, token: str) -> Client:
        """At one of the processes, with what somebody was sent. Whoever gets it closes it."""
        return Client(f"http://127.0.0.1:{self._ports[at]}", token, patience=_PATIENCE)

    def learn(self, owners: Mapping[str, int]) -> None:
        """Whose the sessions are that were not made here: those below others."""
        self._owner_of.update(owners)

    def client(self, session_id: str, at: int) -> Client:
        """At one of the processes, as the owner of a session."""
        return self._clients[at][self._owner_of[session_id]]

    async def ready(self) -> None:
        """Somebody answers; from now on each is asked again and again whether it is there."""
        await self.ask(lambda at: self._clients[at][0].sessions.list(limit=1))
        self._probing = [asyncio.create_task(self._probe(at), name=f"probe {at}") for at in range(len(self._clients))]

    async def create(self, key: str) -> Session:
        """A new session of any owner, asked for until somebody answers."""
        owner = self._chance.randrange(len(self._clients[0]))

        async def create(at: int) -> Session:
            session = await self._clients[at][owner].sessions.create(idempotency_key=key)
            self._owner_of[session.id] = owner
            self._handles[session.id, at] = session
            return session

        return await self.ask(create)

    async def session(self, session_id: str, at: int) -> Session:
        """A handle on a session at one of the processes; looked up once."""
        found = self._handles.get((session_id, at))
        if found is None:
            found = self._handles[session_id, at] = await self.client(session_id, at).sessions.get(session_id)
        return found

    def forget(self, session_id: str) -> None:
        for at in range(len(self._clients)):
            self._handles.pop((session_id, at), None)

    async def ask(self, do: Callable[[int], Awaitable[T]]) -> T:
        """Ask until somebody answers: only for what is done once however often it is asked."""
        while True:
            try:
                return await self.ask_once(do)
            except AWAY:
                await asyncio.sleep(_PAUSE_SECONDS)

    async def ask_once(self, do: Callable[[int], Awaitable[T]], *, at: int | None = None) -> T:
        """Raises one of `AWAY` when it is not known what became of it."""
        at = self.choose() if at is None else at
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await do(at)
        except AWAY as exc:
            self.note(exc, at)
            raise

    def choose(self, *, former: int | None = None) -> int:
        """One that is not known to be away, and not the former one, if there is a choice."""
        now = time.monotonic()
        every = range(len(self._clients))
        here = [at for at in every if self._shunned_until[at] <= now] or list(every)
        return self._chance.choice([at for at in here if at != former] or here)

    def note(self, exc: BaseException, at: int) -> None:
        said = f": {exc}" if isinstance(exc, ServerFault) else ""
        self.troubles[f"{type(exc).__name__}{said}"] += 1
        if isinstance(exc, Unreachable | TimeoutError):
            self._shun(at)

    async def _probe(self, at: int) -> None:
        while True:
            try:
                async with asyncio.timeout(_PROBE_SECONDS):
                    await self._clients[at][0].check()
            except (StoreUnavailable, NoWorkers):
                pass  # it is there, and what it says of its database, another one would say too
            except (Unreachable, ServerFault, TimeoutError):
                self._shun(at)
            await asyncio.sleep(_PROBE_SECONDS)

    def _shun(self, at: int) -> None:
        self._shunned_until[at] = time.monotonic() + _SHUNNED_SECONDS

    async def close(self) -> None:
        for each in self._probing:
            each.cancel()
        await asyncio.gather(*self._probing, return_exceptions=True)
        for clients in self._clients:
            for each in clients:
                await each.close()
