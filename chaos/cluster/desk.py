"""Where the people of the cluster see what is needed, and say it: over HTTP, at whichever API process answers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from chaos.cluster.balancer import AWAY, Balancer
from chaos.link import Refused
from chaos.people import Need
from outlast.client import Client
from outlast.errors import OutlastError

T = TypeVar("T")

_MOST = 200


class ClusterDesk:
    """Each owner's people see their own tasks only. What is said is said again until there is an answer to it."""

    def __init__(self, balancer: Balancer) -> None:
        self._balancer = balancer
        self._owner_of: dict[str, int] = {}

    async def needs(self) -> list[Need]:
        found = await asyncio.gather(*(self._needs_of(owner) for owner in range(self._balancer.owners)))
        return [need for needs in found for need in needs]

    async def say(self, need: Need, op: str, by: str, value: str) -> None:
        async def say(client: Client) -> object:
            match op:
                case "reply":
                    return await client.tasks.reply(need.task_id, value, by=by, request_id=need.request_id)
                case "approve":
                    return await client.tasks.approve(need.task_id, by=by)
                case _:
                    return await client.tasks.refuse(need.task_id, by=by, reason=value)

        await self._answer(need, say)

    async def complete(self, need: Need, token: str | None, value: str) -> bool:
        """By the address that was sent out, as a stranger does; or by the owner."""

        async def complete(client: Client) -> bool:
            return (await client.tasks.complete(need.task_id, result=value)).applied

        if token is None:
            return await self._answer(need, complete)

        async def as_stranger(at: int) -> bool:
            async with self._balancer.stranger(at, token) as client:
                return await complete(client)

        return await self._told(self._balancer.ask(as_stranger))

    async def _needs_of(self, owner: int) -> list[Need]:
        """Nothing while nobody answers: it is asked for again soon."""

        async def look(at: int) -> list[Need]:
            tasks = self._balancer.client_of(owner, at).tasks
            asking = (await tasks.requests(limit=_MOST)).items
            needs = [
                Need(each.id, each.session_id, each.request.kind, each.request.id) for each in asking if each.request
            ]
            outside = await tasks.list(kind="external", state="open", order="oldest", limit=_MOST)
            return [*needs, *(Need(each.id, each.session_id, "external") for each in outside)]

        try:
            found = await self._balancer.ask_once(look)
        except AWAY:
            return []
        self._owner_of.update((each.task_id, owner) for each in found)
        return found

    async def _answer(self, need: Need, say: Callable[[Client], Awaitable[T]]) -> T:
        owner = self._owner_of[need.task_id]
        return await self._told(self._balancer.ask(lambda at: say(self._balancer.client_of(owner, at))))

    async def _told(self, asked: Awaitable[T]) -> T:
        try:
            return await asked
        except AWAY:
            raise
        except OutlastError as exc:
            raise Refused(exc.code) from exc
