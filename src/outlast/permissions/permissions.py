"""What a session's tools may do: a list that allows, a list that denies, and those of its ancestors.

Deny wins over allow. An allow list means: only those. Along a chain of sessions a call needs the consent of each of
them, so that a descendant never may what an ancestor may not, whatever its own lists say.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from outlast.errors import InvalidInput
from outlast.permissions.rule import Rule, parse

MOST_RULES = 200
MOST_PATTERNS = 50
"""In all rules of a session: each may have to be looked for in the arguments of every call."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """Of one session. `allow` None: every tool that is not denied."""

    allow: Sequence[Rule] | None = None
    deny: Sequence[Rule] = ()

    def refusal(self, tool: str, arguments: Any) -> str | None:
        """Why this call is not allowed, for the model; None when it is."""
        for each in self.deny:
            if each.may_apply(tool, arguments):
                return _denied(tool, each)
        is_allowed = self.allow is None or any(each.surely_applies(tool, arguments) for each in self.allow)
        return None if is_allowed else self._not_allowed(tool)

    def sure_refusal(self, tool: str, arguments: Any) -> str | None:
        """Why this call cannot be allowed; None when it may be.

        Its arguments are not validated yet: the tool's defaults may come, and numbers that are written as text. So a
        condition that cannot be told speaks for the call here, and against it in `refusal`.
        """
        for each in self.deny:
            if each.surely_applies(tool, arguments):
                return _denied(tool, each)
        may_be_allowed = self.allow is None or any(each.may_apply(tool, arguments) for each in self.allow)
        return None if may_be_allowed else self._not_allowed(tool)

    def _not_allowed(self, tool: str) -> str:
        assert self.allow is not None
        about = [each.text for each in self.allow if each.names(tool)]
        only = f"allows only {', '.join(about)}" if about else "does not allow it"
        return f"The tool {tool!r} was not run: this session {only}."

    def offers(self, tool: str) -> bool:
        """Whether there are arguments with which it might be allowed: others need not be shown to the model."""
        is_allowed = self.allow is None or any(each.names(tool) for each in self.allow)
        return is_allowed and not self.denies_all(tool)

    def denies_all(self, tool: str) -> bool:
        """Whether it is denied whatever the arguments."""
        return any(not each.conditions and each.names(tool) for each in self.deny)


def _denied(tool: str, rule: Rule) -> str:
    return f"The tool {tool!r} was not run: this session denies {rule.text}."


NOTHING = Permissions(allow=())


def read(*, allow: Sequence[str] | None = None, deny: Sequence[str] = ()) -> Permissions:
    """Raises `InvalidInput` that names the rule and its fault."""
    if len(allow or ()) + len(deny) > MOST_RULES:
        raise InvalidInput(f"A session has at most {MOST_RULES} rules.")
    read = Permissions(None if allow is None else tuple(map(parse, allow)), tuple(map(parse, deny)))
    check_patterns([*(read.allow or ()), *read.deny])
    return read


def check_patterns(rules: Iterable[Rule]) -> None:
    """Raises `InvalidInput` where they are too many to be looked for."""
    count = sum(each.pattern is not None for rule in rules for each in rule.conditions)
    if count > MOST_PATTERNS:
        raise InvalidInput(f"The rules of a session have at most {MOST_PATTERNS} patterns; these have {count}.")


def refusal(chain: Iterable[Permissions], tool: str, arguments: Any) -> str | None:
    """Why a call is not allowed in a session with these ancestors, in any order; None when all of them allow it."""
    return next((why for each in chain if (why := each.refusal(tool, arguments)) is not None), None)


def sure_refusal(chain: Iterable[Permissions], tool: str, arguments: Any) -> str | None:
    """Of a call that is judged again when it runs, by the arguments that its tool then gets."""
    return next((why for each in chain if (why := each.sure_refusal(tool, arguments)) is not None), None)


def is_offered(chain: Iterable[Permissions], tool: str) -> bool:
    return all(each.offers(tool) for each in chain)
