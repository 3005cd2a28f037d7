"""Without a browser the tests that need one fail in words; only who asks for it leaves them out."""

from pathlib import Path

import pytest

from tests.support.screens.browser import executable


def test_a_missing_browser_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AssertionError, match=r"apt-get install chromium.*OUTLAST_SKIP_BROWSER=1"):
        executable()
