"""The gates of one run, in order: the first that does not let a call run decides."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from outlast.calls.gates.gate import RUN, CallRequest, EndListener, Gate, Run, Verdict


class Gates:
    """Asked by the hook of a turn before each of its calls, and by whoever runs a call without a turn."""

    def __init__(self, gates: Sequence[Gate]) -> None:
        self._gates = gates
        self._heard: list[Callable[[CallRequest, BaseException | None], str | None]] = [
            cast(EndListener, each).ended for each in gates if hasattr(each, "ended")
        ]

    async def admit(self, call: CallRequest) -> Verdict:
        """Let run: with the arguments that the last gate gave, if any did. Each gate sees those of the one before."""
        changed: Any = None
        is_approved = False
        for gate in self._gates:
            verdict = await gate.admit(call)
            if not isinstance(verdict, Run):
                return verdict
            if verdict.args is not None:
                changed = verdict.args
                call = replace(call, args=changed)
            is_approved = is_approved or verdict.is_approved
        return RUN if changed is None and not is_approved else Run(changed, is_approved=is_approved)

    def ended(self, call: CallRequest, error: BaseException | None) -> list[str]:
        """A call that was let run has ended; gives what the gates have to say to its failure."""
        said = [ended(call, error) for ended in self._heard]
        return [each for each in said if each is not None]
