"""Prerequisites: a tool may require that another was called earlier in the session."""

from outlast.calls.gates.earlier_calls import EarlierCalls
from outlast.calls.gates.gate import RUN, Answer, CallRequest, Verdict
from outlast.calls.gates.live_constraints import LiveConstraints

REQUIRED = "The tool {tool!r} was not run: it requires that {needed!r} was called before. Call {needed!r} first."


class PrerequisiteGate:
    """A gate for tools with the hint `requires`. A binding may waive it, as its session may."""

    def __init__(self, earlier: EarlierCalls, constraints: LiveConstraints) -> None:
        self._earlier = earlier
        self._constraints = constraints
        self._called: set[str] = set()

    async def admit(self, call: CallRequest) -> Verdict:
        for each in call.hints.requires:
            if each.kind == "tool" and not await self._is_met(each.name):
                return Answer(failure=REQUIRED.format(tool=call.tool, needed=each.name))
        return RUN

    def ended(self, call: CallRequest, error: BaseException | None) -> str | None:
        """Calls of this run are not all in history yet."""
        if error is None:
            self._called.add(call.tool)
        return None

    async def _is_met(self, tool: str) -> bool:
        if tool in self._called:
            return True
        binding = (await self._constraints.now()).binding
        if binding is not None and binding.get("waives_prerequisites") is True:
            return True
        is_met = await self._earlier.has(tool)
        if is_met:
            self._called.add(tool)
        return is_met
