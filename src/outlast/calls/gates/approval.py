"""Approval: a call whose tool asks for one waits until a person has decided."""

import inspect
from typing import Any

import structlog

from outlast.calls.gates.gate import RUN, CallRequest, Run, Verdict, Wait
from outlast.calls.gates.live_constraints import LiveConstraints
from outlast.containment import Contained
from outlast.values.redact import last_line

_FINAL = "What it does cannot be undone."

log = structlog.get_logger("outlast.calls")


class ApprovalGate:
    """Asked last: a person is not bothered with a call that another gate would refuse."""

    def __init__(self, constraints: LiveConstraints) -> None:
        self._constraints = constraints

    async def admit(self, call: CallRequest) -> Verdict:
        if call.is_approved or call.is_external:
            return RUN
        if (await self._constraints.now()).is_always_approved(call.tool, call.plain_args):
            return Run(is_approved=True)
        return wait_for_approval(call) if call.needs_approval or await _asks(call) else RUN


def wait_for_approval(call: CallRequest) -> Wait:
    """What a person is asked, and with which arguments the tool would run."""
    details: dict[str, Any] = {"args": call.plain_args}
    if call.metadata:
        details["metadata"] = call.metadata
    prompt = f"May the tool {call.tool!r} be run with these arguments?"
    return Wait("approval", f"{prompt} {_FINAL}" if call.hints.destructive else prompt, details)


async def _asks(call: CallRequest) -> bool:
    """What its hint says. A function that fails cannot say that nobody need be asked."""
    asks = call.hints.approve
    if not callable(asks):
        return asks
    try:
        with Contained():
            answer = asks(call.plain_args)
            return bool(await answer if inspect.isawaitable(answer) else answer)
    except Exception as exc:
        log.warning("whether a call needs an approval could not be told", tool=call.tool, error=last_line(exc))
        return True
