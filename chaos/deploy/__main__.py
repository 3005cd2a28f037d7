"""The command line: `python -m chaos.deploy [--seconds S] [--clients N] [--pause P] [--seed S]`."""

import argparse
import asyncio
import random
import signal
import sys
from pathlib import Path

from chaos.deploy.run import Load, Run
from chaos.run import RESULTS
from tests.support.stores.postgres import installed_postgres


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos.deploy", description="Replace a version under load.")
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds of load before and after (default: 10)")
    parser.add_argument("--clients", type=int, default=8, help="how many clients talk at once")
    parser.add_argument("--pause", type=float, default=0.2, help="seconds a client waits before its next message")
    parser.add_argument("--witnesses", type=int, default=2, help="how many calls of each kind last through it")
    parser.add_argument("--seed", type=int, default=None, help="the seed of an earlier run")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of the report")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that nothing is left behind
    seed = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    load = Load(given.clients, given.pause, given.seconds, given.witnesses)
    with installed_postgres(is_durable=True) as postgres:
        return asyncio.run(Run(postgres, load=load, seed=seed, results=given.results).play())


if __name__ == "__main__":
    sys.exit(main())
