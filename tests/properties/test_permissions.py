"""Whatever the lists of a tree of sessions say, no session may what an ancestor may not (A7)."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from outlast.errors import InvalidInput
from outlast.permissions import permissions
from outlast.permissions.permissions import Permissions, is_offered, refusal
from outlast.permissions.rule import parse

NAMES = st.sampled_from(["shell", "pay", "read", "mcp_a", "mcp_b"])
PATTERNS = st.sampled_from(["shell", "pay", "read", "mcp_*", "*", "*_a", "s*l"])
CONDITIONS = st.sampled_from(
    ["command~='^git '", "command=='ls'", "amount<=100", "amount>5", "amount!=7", "x.y==true", "command==null"]
)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(0, 200), st.sampled_from(["ls", "git push", "7", ""]))
ARGUMENTS = st.dictionaries(st.sampled_from(["command", "amount", "x"]), st.one_of(VALUES, st.just({"y": True})))


def _rule(name: str, held: list[str]) -> str:
    return f"{name}({', '.join(held)})" if held else name


def _lists(allow: list[str] | None, deny: list[str]) -> Permissions:
    return permissions.read(allow=allow, deny=deny)


RULES = st.builds(_rule, PATTERNS, st.lists(CONDITIONS, max_size=2))
LISTS = st.builds(_lists, st.one_of(st.none(), st.lists(RULES, max_size=3)), st.lists(RULES, max_size=3))


@given(st.lists(LISTS, min_size=1, max_size=6), st.lists(st.integers(0, 5), min_size=6, max_size=6), NAMES, ARGUMENTS)
def test_no_descendant_may_what_an_ancestor_may_not(
    lists: Sequence[Permissions], parents: Sequence[int], tool: str, arguments: Any
) -> None:
    """A7: over random trees; and what may be called is offered."""

    def chain(session: int) -> list[Permissions]:
        return [lists[session], *(chain(parents[session] % session) if session else [])]

    may = [refusal(chain(each), tool, arguments) is None for each in range(len(lists))]
    for each in range(1, len(lists)):
        assert may[parents[each] % each] or not may[each]
        assert is_offered(chain(each), tool) or not may[each]


@given(LISTS, NAMES, ARGUMENTS, ARGUMENTS)
def test_what_is_refused_before_validation_would_be_refused_after_it(
    lists: Permissions, tool: str, arguments: Any, defaults: Any
) -> None:
    """A7, B3: whatever defaults the tool adds to what was given; what is not there counts as null until then."""
    if not any(
        condition.value is None for rule in [*(lists.allow or ()), *lists.deny] for condition in rule.conditions
    ):
        given_and_added = {**defaults, **arguments}
        assert lists.sure_refusal(tool, arguments) is None or lists.refusal(tool, given_and_added) is not None


@given(RULES, NAMES, ARGUMENTS)
def test_what_a_rule_allows_it_would_also_deny(rule: str, tool: str, arguments: Any) -> None:
    """A7: what cannot be told is on the careful side of both lists."""
    read = parse(rule)
    assert read.may_apply(tool, arguments) or not read.surely_applies(tool, arguments)
    assert parse(read.text).text == read.text


@given(st.text(max_size=40))
def test_whatever_is_written_is_read_or_refused(text: str) -> None:
    with suppress(InvalidInput):
        assert parse(text).text == text.strip()
