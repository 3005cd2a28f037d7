"""Whether a file that is open still has its name: what is written to one that was removed is lost with the process."""

import os
from pathlib import Path

from outlast.errors import StoreUnavailable


class FilesInPlace:
    """Remembers which files were opened under their names."""

    def __init__(self) -> None:
        self._known: dict[Path, os.stat_result] = {}

    def remember(self, *paths: Path) -> None:
        """As they are now. One that is not there yet is not looked for."""
        for path in paths:
            if path.exists():
                self._known[path] = path.stat()

    def check(self) -> None:
        """Raises `StoreUnavailable` naming the first that was removed or replaced."""
        for path, known in self._known.items():
            if not path.exists() or not os.path.samestat(path.stat(), known):
                raise StoreUnavailable(
                    f"{path.name} was removed or replaced while this process has it open: what is written from now on "
                    "may be lost. Put the file back or keep a copy of what is there, then restart the server."
                )
