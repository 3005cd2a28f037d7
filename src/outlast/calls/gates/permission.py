"""Permissions: a call runs only if its session allows it, and each ancestor of that does."""

from outlast.calls.gates.gate import RUN, Answer, CallRequest, Verdict
from outlast.calls.gates.live_constraints import LiveConstraints


class PermissionGate:
    """A gate that looks at the arguments as the tool would get them."""

    def __init__(self, constraints: LiveConstraints) -> None:
        self._constraints = constraints

    async def admit(self, call: CallRequest) -> Verdict:
        chain = await self._constraints.now()
        if not chain.permissions:
            return RUN
        refusal = chain.refusal(call.tool, call.plain_args)
        return RUN if refusal is None else Answer(failure=refusal)
