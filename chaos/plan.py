"""Which kill comes when: a plan that follows from the seed alone, so that a round can be played again."""

import random
from dataclasses import dataclass
from typing import Literal

KILLS_PER_ROUND = 10

Moment = Literal["before", "after"]

BACKGROUND = ("park", "task.end", "wake", "withdraw", "cancel", "cancel.end")
"""`park` makes a task and `task.end` ends it, which may start a turn (`wake`); `cancel` asks it to end before.

`withdraw` is the answer of `check_background`: what it tells is not told again by a wake.
"""

WORK = ("admit", "spawn", "child.start", "child.end", "reply", "decide", "complete", "fire")
"""What is set going on purpose, and what comes back to it: by people, and by those who do the work elsewhere.

`fire` is the commit in which a schedule fires.
"""

FIRST = (*BACKGROUND, *WORK)
"""With these a run begins."""

TURNS = ("claim", "deliver", "request", "journal", "tool")
"""Commits by their names, and `tool`, which is inside a tool. Each cycle has both moments of these and of the above."""

ENDS = ("flush", "turn.end", "hold", "stop")
"""Of these each cycle has one moment, the next one the other. `hold` is the wish to stop, `stop` what it leads to."""

RARE = (
    "accept",
    "resume",
    "drop",
    "hand_over",
    "task.claim",
    "settle_task",
    "fold",
    "reconcile",
    "create",
    "nudge",
    "retry",
)
"""Places of which each cycle has a few. At `settle_task` a person says what became of a task nobody knows about."""

ONCE = frozenset({"claim", "reconcile", "hand_over", "task.claim", "settle_task", *FIRST})
"""Places that a worker may reach only once."""

RARE_PER_CYCLE = 3
INSTANTS_PER_CYCLE = 1


@dataclass(frozen=True, slots=True)
class Kill:
    """One death. Without a `place` it comes `after_seconds`, from outside; else at the nth time the worker is there."""

    place: str | None = None
    moment: Moment = "before"
    nth: int = 1
    after_seconds: float = 0.0

    @property
    def name(self) -> str:
        return "instant" if self.place is None else f"{self.place}/{self.moment}"


def _both(places: tuple[str, ...]) -> list[tuple[str, Moment]]:
    return [(place, moment) for place in places for moment in ("before", "after")]


def cycle(seed: int, number: int) -> list[Kill]:
    """Cycle `number` of a run: the important places, some rare ones, some instants.

    It begins with each place of background work once, so that a short run has been at all of them.
    """
    chance = random.Random(f"plan {seed} {number}")
    rare = _both(RARE)
    random.Random(f"rare {seed}").shuffle(rare)
    at_rare = number * RARE_PER_CYCLE
    first_moments, other_moments = _halves(_both(FIRST), chance)
    places = other_moments + _both(TURNS)
    places += [each for at, each in enumerate(_both(ENDS)) if (at // 2 + at + number) % 2]
    places += [rare[(at_rare + each) % len(rare)] for each in range(RARE_PER_CYCLE)]
    kills = [Kill(place, moment, 1 if place in ONCE else chance.choice((1, 1, 1, 2, 3))) for place, moment in places]
    kills += [Kill(after_seconds=chance.uniform(0.0, 0.6)) for _ in range(INSTANTS_PER_CYCLE)]
    chance.shuffle(kills)
    return [*(Kill(place, moment) for place, moment in first_moments), *kills]


def _halves(
    both: list[tuple[str, Moment]], chance: random.Random
) -> tuple[list[tuple[str, Moment]], list[tuple[str, Moment]]]:
    """Of each place one moment, and the other one: both in another order."""
    pairs = [chance.sample(both[at : at + 2], 2) for at in range(0, len(both), 2)]
    chance.shuffle(pairs)
    return [each[0] for each in pairs], [each[1] for each in pairs]


def round_kills(seed: int, number: int, kills: int, *, place: str | None = None) -> list[Kill]:
    """The kills of round `number`, which do not depend on how many rounds there are. With `place`, all are there."""
    if place is not None:
        return [Kill(place, "after" if at % 2 else "before") for at in range(kills)]
    length = len(cycle(seed, 0))
    chosen: list[Kill] = []
    for at in range(number * KILLS_PER_ROUND, number * KILLS_PER_ROUND + kills):
        chosen.append(cycle(seed, at // length)[at % length])
    return chosen
