"""A short round of generated requests; `make fuzz` sends ten thousand (G3)."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(300)
def test_generated_requests_meet_no_server_error(tmp_path: Path) -> None:
    """G3: no 5xx from any input, and every answer as the OpenAPI says; the server lives on."""
    command = [sys.executable, "-m", "fuzz", "--cases", "500", "--report", str(tmp_path / "report.json")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-8_000:] + ran.stderr[-2_000:]
