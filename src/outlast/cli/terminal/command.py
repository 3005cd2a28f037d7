"""How the command is typed in this shell."""

import shutil
import sys
from pathlib import Path

NAME = "outlast"


def typed() -> str:
    """Its name, where the shell finds this very program under it; else the path with which it was started."""
    started = Path(sys.argv[0])
    found = shutil.which(NAME)
    if started.name != NAME or (found is not None and Path(found).resolve() == started.resolve()):
        return NAME
    return sys.argv[0]
