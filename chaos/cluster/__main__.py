"""The command line: `python -m chaos.cluster [--faults N] [--seed S] [--name NAME] ...`."""

import argparse
import asyncio
import random
import signal
import sys
from pathlib import Path

from chaos.cluster.run import Load, Run
from chaos.run import RESULTS
from tests.support.stores.postgres import installed_postgres


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos.cluster", description="Break a cluster; look for losses.")
    parser.add_argument("--faults", type=int, default=200, help="how many faults (default: 200)")
    parser.add_argument("--seed", type=int, default=None, help="the seed of an earlier run: the same faults again")
    parser.add_argument(
        "--rate", type=float, default=20.0, help="messages a second that are sent, if the machine carries them (20)"
    )
    parser.add_argument(
        "--clients", type=int, default=96, help="how many talk at once at most: what is due then waits (96)"
    )
    parser.add_argument("--gap", type=float, default=2.0, help="seconds between two faults, on average")
    parser.add_argument("--freeze", type=float, default=20.0, help="seconds that a frozen process stands still")
    parser.add_argument("--limit", type=float, default=3_600, help="seconds after which no further fault begins")
    parser.add_argument("--name", default="latest", help="the name of the report: cluster-NAME.json")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of the report")
    parser.add_argument(
        "--throw-away",
        action="store_true",
        help="let PostgreSQL write nothing to the disk: only the machine can lose it",
    )
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that nothing is left behind
    seed = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    load = Load(given.rate, given.clients, given.gap, given.freeze, given.limit)
    with installed_postgres(is_durable=not given.throw_away) as postgres:
        run = Run(postgres, faults=given.faults, seed=seed, load=load, name=given.name, results=given.results)
        return asyncio.run(run.play())


if __name__ == "__main__":
    sys.exit(main())
