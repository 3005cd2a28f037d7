"""The programs in `examples/` run as their pages say, and print what stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
OUTPUT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def ran(name: str, folder: Path, **environment: str) -> str:
    """What `python app.py` prints, in a folder of its own."""
    command = [sys.executable, "-W", "error", EXAMPLES / name / "app.py"]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["listen", "mcp"])
def test_an_example_prints_what_its_page_says(name: str, tmp_path: Path) -> None:
    """K5: an MCP server whose slow tool is parked by `with_metadata`; observers of every commit."""
    [said] = OUTPUT.findall((EXAMPLES / name / "README.md").read_text(encoding="utf-8"))
    assert ran(name, tmp_path) == said


def test_the_traces_arrive_at_a_local_collector(tmp_path: Path) -> None:
    """I2: turn, model requests and tool in one trace, by OTLP to this machine; nobody needs an account."""
    command = [sys.executable, EXAMPLES / "tracing" / "collector.py", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as collector:
        try:
            assert collector.stdout is not None
            url = collector.stdout.readline().split()[-1]
            assert ran("tracing", tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=url) == "Take a hat: it is sunny in Oslo.\n"
        finally:
            collector.terminate()
        spans = [line.split(maxsplit=3) for line in collector.stdout]
    assert {"turn travel", "chat scripted", "tool weather"} <= {name.strip() for *_, name in spans}
    assert len({trace for trace, *_ in spans}) == 1


def test_pages_say_how_to_install_from_a_clone() -> None:
    """The package is in no registry yet: by its name alone pip finds nothing."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "how-to").glob("*.md")]
    for page in [*pages, *EXAMPLES.glob("*/README.md")]:
        assert re.findall(r"pip install[^`\n#]*\boutlast\b", page.read_text(encoding="utf-8")) == [], page


def test_every_example_has_a_page_and_another_leads_to_it() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs" / "how-to").glob("*.md")]
    said = "".join(each.read_text(encoding="utf-8") for each in pages)
    names = sorted(each.parent.name for each in EXAMPLES.glob("*/*") if each.name in ("app.py", "package.json"))
    assert {"listen", "mcp", "tracing"} <= set(names)
    assert [
        each for each in names if not (EXAMPLES / each / "README.md").is_file() or f"examples/{each}" not in said
    ] == []
