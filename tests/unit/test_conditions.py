"""What a monitor waits for: judged in the transaction that ends a check, so never for long."""

import pytest

from outlast.errors import InvalidInput
from outlast.values import condition


@pytest.mark.timeout(30)
def test_a_long_result_is_looked_at_from_its_beginning() -> None:
    """G3, F4: whatever the pattern is and however long the result, others do not wait for it."""
    for pattern in ("[01]*1[01]{300}!", "[01]*1[01]{900}!"):
        judged = condition.check({"kind": "matches", "value": pattern})
        assert not condition.is_met(judged, "0110100110" * 100_000, None, has_last=False)
    judged = condition.check({"kind": "matches", "value": "(?i)error \\d+"})
    assert condition.is_met(judged, "Error 42" + "x" * 1_000_000, None, has_last=False)


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", "(?:(?:a?){60}){60}", "x" * 501, 5])
def test_a_pattern_that_cannot_be_used_is_refused(pattern: object) -> None:
    with pytest.raises(InvalidInput, match="regular expression"):
        condition.check({"kind": "matches", "value": pattern})
