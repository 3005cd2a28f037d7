"""Child processes that tests let die. They are forked from a server that has imported everything and done nothing.

A fresh interpreter costs seconds on a busy machine, and says nothing more about a crash.
"""

import asyncio
import importlib
import multiprocessing
import os
from pathlib import Path

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    [
        "outlast",
        "outlast.engines.distributed",
        "outlast.store.postgres.opening",
        "tests.support.crashes.busy_child",
        "tests.support.crashes.crash",
        "tests.support.crashes.deleting_child",
        "tests.support.crashes.parking_child",
        "tests.support.crashes.regenerating_child",
        "tests.support.crashes.scenarios",
        "tests.support.crashes.scheduling_child",
        "tests.support.crashes.viewing_child",
    ]
)
_SECONDS = 120.0


def run(module: str, *arguments: str, log: Path) -> int:
    """Run `main` of a module in a child to its end; its exit code. What it prints is added to `log`."""
    process = _PROCESSES.Process(target=_main, args=(module, arguments, str(log)), name=module)
    process.start()
    try:
        process.join(_SECONDS)
        code = process.exitcode
    finally:
        process.kill()
        process.join()
        process.close()
    assert code is not None, f"{module} did not end: {log.read_text()}"
    return code


def _main(module: str, arguments: tuple[str, ...], log: str) -> None:
    with open(log, "ab", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    asyncio.run(importlib.import_module(module).main(*arguments))
