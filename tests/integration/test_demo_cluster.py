"""`make demo-cluster`, with one act and one worker less: it shows what it claims, and leaves nothing running."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.processes.serving_process import ROOT

PATIENCE = 150


@pytest.mark.timeout(200)  # five interpreters and a database server start, on machines that may be busy
def test_the_cluster_demo_survives_its_kills_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    """K1, P4, P6: a worker, a server and PostgreSQL fail in one turn; the text is exact; Ctrl-C ends every process."""
    with subprocess.Popen(
        [sys.executable, "-m", "chaos.demo", "--fast", "--brief", "--stay"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            shown = ""
            for line in process.stdout:
                shown += line
                if "Its processes:" in line:
                    break
            else:
                pytest.fail(f"it ended by itself:\n{shown}")
            group = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(signal.SIGINT)
            shown += process.communicate(timeout=PATIENCE)[0]
        finally:
            process.kill()
    assert process.returncode == 0, shown
    said = " ".join(shown.split())
    killed = [int(each) for each in re.findall(r"kill -9 (\d+): ", said)]
    started = [int(each) for each in re.findall(r"\(process (\d+)\)", said)]
    assert (len(killed), len(started)) == (2, 4), shown
    assert set(killed) < set(started)
    assert "PostgreSQL crashes" in said
    assert "another worker goes on: the broken sentence is taken back and said anew (attempt 2)" in said
    assert "over 2 servers: exactly what the agent said, nothing missing and nothing twice" in said
    assert "book.txt has 3 lines" in said
    assert said.endswith("Everything is stopped; nothing is left behind.")
    folder = Path(re.findall(r"from the wheel, in (\S+)", said)[0])
    assert not folder.exists()
    everybody: list[list[str]] = [each.info["cmdline"] or [] for each in psutil.process_iter(["cmdline"])]
    assert [each for each in everybody if str(folder) in " ".join(each)] == []
    assert len(group) >= 2
    assert [each for each in group if each.is_running()] == []
    assert [pid for pid in started if psutil.pid_exists(pid)] == []
