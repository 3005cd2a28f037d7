"""Runs example files in order, each in a process of its own: `python -m tests.support.processes.run_examples FILE...`.

The processes are forked after the slow imports. For each file its output, its errors and its exit code are
written beside it.
"""

import os
import runpy
import sys
from pathlib import Path

import outlast.testing

assert outlast.Outlast
assert outlast.testing.__all__


def run(file: Path) -> int:
    """The exit code of the example, as a shell would see it."""
    child = os.fork()
    if child == 0:
        for stream, suffix in ((1, ".out"), (2, ".err")):
            target = os.open(file.with_suffix(suffix), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(target, stream)
            os.close(target)
        sys.argv = [file.name]
        sys.path.insert(0, str(file.parent))
        runpy.run_path(file.name, run_name="__main__")
        # Leaves as a script does: what it registered for its end runs, and output is flushed.
        sys.exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    for name in sys.argv[1:]:
        file = Path(name).absolute()
        os.chdir(file.parent)
        file.with_suffix(".code").write_text(str(run(file)))


if __name__ == "__main__":
    main()
