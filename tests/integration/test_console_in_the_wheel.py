"""The console travels in the wheel: whoever installs it needs no Node (K2)."""

import zipfile
from pathlib import Path

from outlast.api.routes.server.page import BUILT
from tests.support.processes.installed import build_wheel

WHERE = "outlast/api/console/"


def test_the_wheel_has_what_was_built(tmp_path: Path) -> None:
    """K2: its document, every file that this names, and nothing that only helps to write it."""
    assert (BUILT / "index.html").is_file(), "the console is not built: run `make console`"
    with zipfile.ZipFile(build_wheel(tmp_path)) as wheel:
        names = [name.removeprefix(WHERE) for name in wheel.namelist() if name.startswith(WHERE)]
        document = wheel.read(f"{WHERE}index.html").decode()
    assets = [name for name in names if name.startswith("assets/")]
    assert len(assets) >= 5
    assert [name for name in assets if name.endswith(".js") and name in document] != []
    assert [name for name in names if name.endswith((".map", ".ts", ".tsx"))] == []
