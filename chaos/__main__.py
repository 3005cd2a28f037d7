"""The command line: `python -m chaos [--kills N] [--seed S] [--round R] [--name NAME]`."""

import argparse
import asyncio
import random
import sys
from pathlib import Path

from chaos.run import RESULTS, Run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos", description="Kill real workers; look for broken promises.")
    parser.add_argument("--kills", type=int, default=300, help="how many workers to kill (default: 300)")
    parser.add_argument("--seed", type=int, default=None, help="the seed of an earlier run, to play it again")
    parser.add_argument("--round", type=int, default=None, help="play only this round of that seed")
    parser.add_argument("--at", default=None, metavar="PLACE", help="kill only at this place, such as journal or tool")
    parser.add_argument("--name", default="latest", help="the name of the report (default: latest)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of the report")
    parser.add_argument("--limit", type=float, default=3_600, help="seconds after which the run is given up")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    run = Run(kills=given.kills, seed=seed, only=given.round, place=given.at, name=given.name, results=given.results)
    return asyncio.run(run.play(limit=given.limit))


if __name__ == "__main__":
    sys.exit(main())
