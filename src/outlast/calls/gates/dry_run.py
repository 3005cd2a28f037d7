"""Dry run: in such a session tools that change things are not run, and answer as if they had been."""

from outlast.calls.gates.gate import RUN, Answer, CallRequest, Verdict
from outlast.calls.gates.live_constraints import LiveConstraints

SIMULATED = (
    "Simulated: this session is a dry run, so the tool was not run and nothing was changed. Go on as if it had worked, "
    "and say in your answer that it was simulated."
)


class DryRunGate:
    """A gate that lets run what only reads."""

    def __init__(self, constraints: LiveConstraints) -> None:
        self._constraints = constraints

    async def admit(self, call: CallRequest) -> Verdict:
        if call.hints.read_only or not (await self._constraints.now()).is_dry_run:
            return RUN
        return Answer({"type": "dry_run", "tool": call.tool, "arguments": call.plain_args, "message": SIMULATED})
