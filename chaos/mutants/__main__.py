"""`python -m chaos.mutants [NAME ...]`: try the mutants, all or those whose name holds a word."""

import sys
import time

from chaos.mutants import trial
from chaos.mutants.catalogue import MUTANTS
from chaos.mutants.mutant import Chaos, Test


def main(words: list[str]) -> int:
    chosen = [each for each in MUTANTS if not words or any(word in each.name for word in words)]
    if not chosen:
        print(f"There is no mutant whose name holds one of {words}.", file=sys.stderr)
        return 2
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
            code, output = trial.run(check, copy)
            print(f"unbroken: {check.name}: {'passes' if code == 0 else 'FAILS'}", flush=True)
            if code != 0:
                is_sound = False
                print(f"    {output[-600:]}", flush=True)
    return is_sound


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
