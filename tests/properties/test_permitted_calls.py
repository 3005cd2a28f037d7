"""Random trees of sessions, with real calls: no session runs what an ancestor may not (A7)."""

import random
from typing import Any

import pytest

from outlast import Permissions, Session
from outlast.permissions import permissions
from outlast.testing import ScriptedModel, call
from tests.support.turns.runtime import Runtime
from tests.support.turns.tree import link

TOOLS = ("shell", "pay", "read")
RULES: tuple[str, ...] = ("shell", "pay", "read", "*", "s*l", "shell(x>2)", "pay(x<=2)", "read(x==3)", "*(x!=1)")
ASKED = [(tool, x) for tool in TOOLS for x in (1, 2, 3)]
RAN: list[tuple[str, int]] = []


def tool(name: str) -> Any:
    def run(x: int) -> str:
        RAN.append((name, x))
        return "ran"

    run.__name__ = name
    return run


def lists(dice: random.Random) -> Permissions:
    allow = dice.choice([None, None, dice.sample(RULES, dice.randint(1, 3))])
    return Permissions(allow=allow, deny=dice.sample(RULES[:3] + RULES[4:], dice.randint(0, 2)))


@pytest.mark.parametrize("seed", range(4))
async def test_no_session_runs_what_an_ancestor_may_not(runtime: Runtime, seed: int) -> None:
    """A7, D10: each session of the tree asks for every call; what runs is exactly what all of its chain allow, and the
    same in copies, which stand outside of the tree.
    """
    dice = random.Random(seed)
    step = [call(name, x=x) for name, x in ASKED]
    model = ScriptedModel([each for _ in range(15) for each in (step, "Done.")])
    async with runtime(model, tools=[tool(name) for name in TOOLS]) as outlast:
        given = [lists(dice) for _ in range(5)]
        tree = [await outlast.sessions.create(permissions=each) for each in given]
        parents = [dice.randrange(at) for at in range(1, 5)]
        for at, parent in enumerate(parents, start=1):
            await link(outlast, tree[at], tree[parent])
        copies = [await outlast.sessions.fork(each.id) for each in tree]
        copies += [await outlast.sessions.import_(await each.export()) for each in tree]
        ran = [await what_runs(each) for each in tree]
        assert [await what_runs(each) for each in copies] == ran * 2
    for at in range(5):
        chain = [at]
        while chain[-1]:
            chain.append(parents[chain[-1] - 1])
        rules = [permissions.read(allow=given[each].allow, deny=given[each].deny) for each in chain]
        assert ran[at] == {each for each in ASKED if permissions.refusal(rules, each[0], {"x": each[1]}) is None}
        assert at == 0 or ran[at] <= ran[parents[at - 1]]


async def what_runs(session: Session) -> set[tuple[str, int]]:
    RAN.clear()
    outcome = await session.ask("all of them")
    assert outcome.text == "Done."
    assert len(RAN) == sum(each.outcome == "success" for each in outcome.calls)
    return set(RAN)
