"""Rules about tools: how they are written, what they match, and what is refused (A7)."""

import math
from typing import Any

import pytest

from outlast.errors import InvalidInput
from outlast.permissions import permissions
from outlast.permissions.permissions import Permissions, is_offered, refusal
from outlast.permissions.rule import parse


@pytest.mark.parametrize(
    ("rule", "tool", "arguments", "applies"),
    [
        ("shell", "shell", {}, True),
        ("shell", "shell2", {}, False),
        ("mcp_*", "mcp_read", {}, True),
        ("mcp_*", "xmcp_read", {}, False),
        ("*", "anything", {}, True),
        ("a*b*c", "a1b2c", {}, True),
        ("a*b*c", "abc", {}, True),
        ("a*b*c", "acb", {}, False),
        ("ab*ba", "aba", {}, False),
        ("shell(command~='^git ')", "shell", {"command": "git status"}, True),
        ("shell(command~='^git ')", "shell", {"command": "rm -r x; git status"}, False),
        (" shell ( command ~= '^git ' ) ", "shell", {"command": "git status"}, True),
        ("pay(amount<=100)", "pay", {"amount": 100}, True),
        ("pay(amount<=100)", "pay", {"amount": 100.01}, False),
        ("pay(amount<=100, currency=='EUR')", "pay", {"amount": 1, "currency": "EUR"}, True),
        ("pay(amount<=100, currency=='EUR')", "pay", {"amount": 1, "currency": "USD"}, False),
        ("pay(amount<=100)", "pay", {"amount": 10**400}, False),
        ("pay(amount > -1.5)", "pay", {"amount": -1}, True),
        ("pay(to.country!='NO')", "pay", {"to": {"country": "DE"}}, True),
        ("pay(is_final==true)", "pay", {"is_final": True}, True),
        ("pay(note==null)", "pay", {}, True),
        ("pay(note!=null)", "pay", {"note": "x"}, True),
        ("say(text=='it''s')", "say", {"text": "it's"}, True),
        ('say(text=="a\\d")', "say", {"text": "a\\d"}, True),
        ("fetch(url~='^https://[^/]*\\.example\\.com(/|$)')", "fetch", {"url": "https://a.example.com/x"}, True),
        ("fetch(url~='^https://[^/]*\\.example\\.com(/|$)')", "fetch", {"url": "https://evil.com/.example.com"}, False),
        ("fetch(url~='com$')", "fetch", {"url": "a.com\n"}, False),
    ],
)
def test_what_a_rule_is_about(rule: str, tool: str, arguments: Any, applies: bool) -> None:
    """A7: by name, with wildcards, and by arguments; here both lists agree."""
    read = parse(rule)
    assert (read.surely_applies(tool, arguments), read.may_apply(tool, arguments)) == (applies, applies)


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        ("pay(amount>100)", {"amount": "500"}),
        ("pay(amount>100)", {"amount": True}),
        ("pay(amount>100)", {"amount": math.nan}),
        ("pay(amount>100)", {"amount": None}),
        ("pay(amount>100)", {}),
        ("pay(amount>100)", None),
        ("pay(amount>100)", '{"amount": 500}'),
        ("pay(amount==1)", {"amount": True}),
        ("pay(to.country=='NO')", {"to": "NO"}),
        ("pay(note~='x')", {"note": ["x"]}),
        ("pay(note~='x')", {"note": "y" * 1_000_001}),
    ],
)
def test_what_cannot_be_told_is_denied_and_not_allowed(rule: str, arguments: Any) -> None:
    """A7: nothing gets past a rule by being written otherwise."""
    read = parse(rule)
    assert (read.surely_applies("pay", arguments), read.may_apply("pay", arguments)) == (False, True)


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ("", "the name of a tool is expected at character 1"),
        ("shell(", "the name of an argument is expected at character 7"),
        ("shell()", "the name of an argument"),
        ("shell(command)", "one of =="),
        ("shell(command='x')", "one of =="),
        ("shell(command=='x'", '"," or ")" is expected'),
        ("shell(command=='x)", "a closing '"),
        ("shell(command=='x') or 1", "the end is expected at character 21"),
        ("shell(command==git)", "a value"),
        ("shell(command<'x')", "a number"),
        ("shell(command<true)", "a number"),
        ("shell(command~=5)", "a pattern"),
        ("shell(command~='(')", "cannot be used"),
        ("shell(command~='(?=x)')", "cannot be used"),
        ("shell(command~='(x)\\1')", "cannot be used"),
        ("shell(command~='a{1000}{1000}')", "cannot be used"),
        (f"shell(command~='{'a' * 501}')", "at most 500"),
        ("shell(a..b==1)", "one of =="),
        ("sh ell", "the end"),
        ("shéll", "the end"),
        ("x" * 1_001, "at most 1000"),
    ],
)
def test_a_bad_rule_is_refused_with_its_fault(rule: str, fault: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(rule)
    assert fault in refused.value.message


def test_deny_wins_and_an_allow_list_means_only_those() -> None:
    """A7."""
    mine = permissions.read(allow=["shell(command~='^git ')", "read_*"], deny=["read_secret", "shell(command~='push')"])
    assert mine.refusal("read_file", {}) is None
    assert mine.refusal("shell", {"command": "git status"}) is None
    assert "denies shell(command~='push')" in (mine.refusal("shell", {"command": "git push"}) or "")
    assert "allows only shell(command~='^git ')" in (mine.refusal("shell", {"command": "rm"}) or "")
    assert "denies read_secret" in (mine.refusal("read_secret", {}) or "")
    assert "does not allow it" in (mine.refusal("write", {}) or "")
    assert permissions.read(allow=[]).refusal("read_file", {}) is not None
    assert Permissions().refusal("anything", {}) is None


def test_what_can_never_be_called_is_not_offered() -> None:
    """A7: a rule about arguments leaves the tool visible."""
    mine = permissions.read(allow=["shell(command~='^git ')", "read_*"], deny=["read_secret", "read_all(x==1)"])
    offered = [tool for tool in ("shell", "read_file", "read_secret", "read_all", "write") if mine.offers(tool)]
    assert offered == ["shell", "read_file", "read_all"]
    assert is_offered([mine, Permissions()], "shell")
    assert not is_offered([mine, permissions.read(deny=["shell"])], "shell")


def test_a_chain_needs_the_consent_of_each() -> None:
    parent, child = permissions.read(deny=["shell"]), permissions.read(allow=["shell", "read"])
    assert refusal([parent, child], "shell", {}) is not None
    assert refusal([parent, child], "read", {}) is None
    assert refusal([parent, child], "write", {}) is not None
    assert refusal([], "write", {}) is None


def test_there_are_only_so_many() -> None:
    with pytest.raises(InvalidInput, match="at most 200"):
        permissions.read(allow=["a"] * 100, deny=["b"] * 101)


@pytest.mark.timeout(20)
def test_no_pattern_takes_more_than_its_share_of_time() -> None:
    """G: patterns of people over texts of models: those that are known to be ruinous elsewhere."""
    for pattern in ("(a*)*b", "(a|a)*b", "(a|aa)+$", "a*a*a*a*a*a*b", "(.*a){20}b"):
        rule = parse(f"shell(command~='{pattern}')")
        assert not rule.surely_applies("shell", {"command": "a" * 200_000 + "!"})


@pytest.mark.timeout(60)
def test_a_pattern_that_is_large_is_held_against_short_texts_only() -> None:
    """G3: linear is the size of the pattern times that of the text; a rule that cannot be judged denies, never allows.

    Without that a single call would hold up its process for ten seconds.
    """
    zeroes_and_ones = "0110100110" * 100_000
    for pattern in ("[01]*1[01]{20}!", "[01]*1[01]{300}!", "[01]*1[01]{900}!"):
        rule = parse(f"shell(command~='{pattern}')")
        for _ in range(50):
            assert not rule.surely_applies("shell", {"command": zeroes_and_ones})
            assert rule.may_apply("shell", {"command": zeroes_and_ones})
        assert not rule.may_apply("shell", {"command": zeroes_and_ones[:500]})
    assert parse("shell(command~='git')").may_apply("shell", {"command": "a" * 100_000 + "git"})


def test_there_are_only_so_many_patterns() -> None:
    """G3: each may have to be looked for in the arguments of every call."""
    rules = [f"shell(command~='{number}', path~='x')" for number in range(25)]
    permissions.read(allow=rules[:10], deny=[*rules[10:], *["shell(command=='x')"] * 50])
    with pytest.raises(InvalidInput, match="at most 50 patterns"):
        permissions.read(allow=rules, deny=["shell(path~='y')"])
