"""One stream over everything an owner has: a page with all sessions needs no more than this."""

from outlast.handles.feed import Fed
from outlast.testing import text
from tests.support.turns.runtime import Runtime, events_of, scripted

A_TURN = ["input.accepted", "turn.queued", "turn.started", "input.delivered", "turn.completed"]


async def test_one_stream_tells_what_happens_in_all_sessions(runtime: Runtime) -> None:
    """E6: states of every session; words only of those asked for; a cursor resumes, also after a restart."""
    seen: list[Fed] = []
    async with runtime(scripted(*[text("Deep and wide.", chunk=2)] * 3)) as outlast:
        sessions = outlast.owned_by("olga")
        one, two = await sessions.create(title="Depth"), await sessions.create(title="Width")
        await (await outlast.owned_by("oskar").create()).ask("not yours")
        await one.ask("How deep?")
        async with outlast.events_of("olga", sessions=[two.id]) as stream:
            await two.ask("How wide?")
            async for each in stream:
                seen.append(each)
                if each.event.is_terminal and each.event.session_id == two.id:
                    break
        assert [event for _, event in seen if event.session_id == two.id] == await events_of(two)
        assert [event.type for _, event in seen if event.session_id == one.id] == ["session.created", *A_TURN]
        assert {event.session_id for _, event in seen} == {one.id, two.id}
    async with runtime(scripted("Again.")) as outlast:
        await (await outlast.owned_by("olga").get(one.id)).ask("And now?")
        async with outlast.events_of("olga", after=seen[-1].cursor, follow=False) as stream:
            assert [event.type async for _, event in stream] == A_TURN
