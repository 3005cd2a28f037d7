"""Builds the console into the package, when it is not there yet and npm is. An editable install goes without."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Console(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        built, sources, npm = root / "src/outlast/api/console/index.html", root / "web", shutil.which("npm")
        if version == "editable" or built.is_file() or not sources.is_dir():
            return
        if npm is None:
            self.app.display_warning("There is no npm: the package is made without the web console.")
            return
        subprocess.run([npm, "ci", "--omit=dev", "--silent"], cwd=sources, check=True)
        subprocess.run([npm, "run", "build", "--silent"], cwd=sources, check=True)
