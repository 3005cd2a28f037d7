"""`python -m chaos.mutants [WORD ...] [--part N/M] [--list]`: try the mutants, all or those whose name holds a word."""

import argparse
import sys
import time
from collections.abc import Sequence

from chaos.mutants import trial
from chaos.mutants.catalogue import MUTANTS
from chaos.mutants.mutant import Chaos, Mutant, Test


def main(arguments: Sequence[str]) -> int:
    given = _parser().parse_args(arguments)
    named = [each for each in MUTANTS if not given.words or any(word in each.name for word in given.words)]
    chosen = part_of(named, *given.part)
    if not chosen:
        print(f"There is no mutant whose name holds one of {given.words}, in that part.", file=sys.stderr)
        return 2
    if given.list:
        for each in chosen:
            print(f"{each.promise}  {each.name}: {each.caught_by.name}")
        return 0
    return _try_out(chosen)


def part_of(mutants: Sequence[Mutant], number: int, parts: int) -> Sequence[Mutant]:
    """One of several parts, which together are all: slow and quick ones stand beside each other, so each gets both."""
    return mutants[number - 1 :: parts]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m chaos.mutants", description="Break the code; something notices.")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only those whose name holds one of these")
    parser.add_argument("--part", type=_part, default=(1, 1), metavar="N/M", help="the Nth of M parts, such as 2/4")
    parser.add_argument("--list", action="store_true", help="say which there are and what catches them, and end")
    return parser


def _part(text: str) -> tuple[int, int]:
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is no part: write 1/4 for the first of four")
    return int(number), int(parts)


def _try_out(chosen: Sequence[Mutant]) -> int:
    print(f"{len(chosen)} mutants", flush=True)
    missed = 0 if _is_sound({each.caught_by for each in chosen}) else 1
    for mutant in chosen:
        began = time.monotonic()
        verdict = trial.try_out(mutant)
        answer = "caught by" if verdict.is_caught else "SURVIVED"
        seconds = time.monotonic() - began
        print(f"{mutant.promise}  {mutant.name}: {answer} {mutant.caught_by.name} ({seconds:.0f} s)", flush=True)
        if not verdict.is_caught:
            missed += 1
            print(f"    {verdict.why}", flush=True)
    print(f"{missed} not caught" if missed else "every mutant was caught", flush=True)
    return 1 if missed else 0


def _is_sound(checks: set[Test | Chaos]) -> bool:
    """Every check passes on the unbroken code: else its failure would say nothing."""
    is_sound = True
    with trial.copied() as copy:
        for check in sorted(checks, key=lambda each: each.name):
            began = time.monotonic()
            code, output = trial.run(check, copy)
            said = f"{'passes' if code == 0 else 'FAILS'} ({time.monotonic() - began:.0f} s)"
            print(f"unbroken: {check.name}: {said}", flush=True)
            if code != 0:
                is_sound = False
                print(f"    {output[-600:]}", flush=True)
    return is_sound


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
