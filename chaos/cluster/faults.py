"""What goes wrong in a cluster: which fault comes when follows from the seed, whom it meets is chance."""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chaos.cluster.agent import STALL_SECONDS
from chaos.cluster.client_load import LoadClient
from chaos.cluster.postgres import ClusterDatabase
from chaos.cluster.supervisor import Member, Supervisor, now_us

WEIGHTS: Mapping[str, int] = {
    "freeze worker": 1,
    "freeze api": 1,
    "kill worker": 7,
    "kill api": 3,
    "pause worker": 2,
    "restart fast": 2,
    "restart immediate": 2,
    "cut all": 1,
    "cut some": 2,
    "stall": 2,
}
"""A `freeze` lasts longer than the silence that others accept, a `pause` does not. A `stall` blocks an event loop."""

PAUSE_SECONDS = 3.0
_BACK_WITHIN = 1.0
_DEAF_US = 3_000_000
"""After a fault it may take so long until everybody hears again what is signalled."""


def plan(seed: int, faults: int) -> list[str]:
    """Each kind once, the long ones first so that others happen meanwhile; then by weight."""
    chance = random.Random(f"faults {seed}")
    long = [each for each in WEIGHTS if each.startswith("freeze")]
    short = [each for each in WEIGHTS if each not in long]
    chance.shuffle(short)
    first = [long[0], *short, *long[1:]][:faults]
    return [*first, *chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=faults - len(first))]


@dataclass(slots=True)
class Injector:
    supervisor: Supervisor
    database: ClusterDatabase
    client: LoadClient
    chance: random.Random
    freeze_seconds: float
    done: Counter[str] = field(default_factory=Counter[str])
    _lasting: asyncio.Task[None] | None = None
    _stalling: asyncio.Task[None] | None = None
    _frozen_last: Member | None = None

    async def inject(self, kind: str) -> None:
        """Returns when the fault has happened; freezes and stalls go on while the next ones come."""
        from_us = now_us()
        lasts_us = 0
        match kind.split():
            case ["kill", role]:
                await self._kill(role)
            case ["freeze", role]:
                await self.thawed()
                lasts_us = int(self.freeze_seconds * 1_000_000)
                self._lasting = self._freeze(role, self.freeze_seconds)
            case ["pause", role]:
                await self._freeze(role, PAUSE_SECONDS)
            case ["restart", mode]:
                await self.database.restart(mode)
            case ["cut", whom]:
                await self.database.cut(1.0 if whom == "all" else 0.3)
            case _:
                lasts_us = int(10 * STALL_SECONDS * 1_000_000)
                await self._stalled()
                self._stalling = asyncio.create_task(self._stall(), name="stall")
        self.done[kind] += 1
        done_us = now_us()
        self.supervisor.note(
            "outages",
            kind=kind,
            from_us=from_us,
            done_us=done_us + lasts_us,
            to_us=done_us + lasts_us + _DEAF_US,
        )

    async def thawed(self) -> None:
        """Nothing is frozen when this returns."""
        if self._lasting is not None:
            await self._lasting
            self._lasting = None

    async def over(self) -> None:
        """Nothing of what was begun goes on when this returns."""
        await self.thawed()
        await self._stalled()

    async def _stalled(self) -> None:
        if self._stalling is not None:
            await self._stalling
            self._stalling = None

    async def _stall(self) -> None:
        """A message whose tool blocks the worker that gets it."""
        await self.client.begin()
        await self.client.send("steer", ["stall"])
        self.client.readers.leave(self.client.reader.session_id)

    async def _kill(self, role: str) -> None:
        member = self._choose(role)
        await self.supervisor.kill(member)
        await asyncio.sleep(self.chance.uniform(0, _BACK_WITHIN))
        await self.supervisor.start_one(member)

    def _freeze(self, role: str, seconds: float) -> asyncio.Task[None]:
        """Not the same one twice in a row: that would be one long freeze, and what hangs on it hangs longer."""
        member = self._frozen_last = self._choose(role, but=self._frozen_last)
        return asyncio.create_task(self.supervisor.freeze(member, seconds), name=f"freeze {member.name}")

    def _choose(self, role: str, *, but: Member | None = None) -> Member:
        members: Sequence[Member] = self.supervisor.workers if role == "worker" else self.supervisor.apis
        up = [each for each in members if each.is_up]
        return self.chance.choice([each for each in up if each is not but] or up)
