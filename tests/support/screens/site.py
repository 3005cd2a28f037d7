"""The example page, built for a test and served beside the API."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.screens.node import FOLDER, node

EXAMPLE = Path(__file__).parents[3] / "examples" / "page"


@dataclass(frozen=True)
class Site:
    """A server with the example page, which is built when it is first asked for."""

    url: str
    folder: Path

    def page(self, version: str = "7") -> str:
        """The address of the page with the stock client of a version."""
        folder = self.folder / version
        if not folder.exists():
            assert (EXAMPLE / "node_modules").is_dir(), "the example is not installed: run `npm ci` in examples/page"
            subprocess.run([node(), "build-page.mjs", version, str(folder)], cwd=FOLDER, check=True)
        return f"{self.url}/pages/{version}/"
