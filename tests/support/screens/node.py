"""Node, and what the tests run in it: stock clients and a browser driver."""

import shutil
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "node"


def node() -> str:
    """The Node that comes with the clients, because version 7 needs at least 22; else the one on the path."""
    assert (FOLDER / "node_modules").is_dir(), "the stock clients are not installed: run `npm ci` in tests/node"
    bundled = next(FOLDER.glob("node_modules/node-*/bin/node"), None)
    found = str(bundled) if bundled is not None else shutil.which("node")
    assert found is not None, "there is no Node: install version 22 or later"
    return found
