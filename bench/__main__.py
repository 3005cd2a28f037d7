"""`python -m bench [NAME ...]`: run benchmarks, print what they found, write `bench/results/<id>.json`."""

import sys
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from bench import (
    console,
    m1_calls,
    m2_turns,
    m3_parked,
    m4_m5_tasks,
    m4_m7_cluster,
    m6_first_event,
    m8_append,
    m9_readers,
    m10_idle,
    m11_tasks,
    m12_start,
    m13_costs,
    m14_long_sessions,
    m15_http_turns,
    m16_first_text,
    m17_feed,
    m17_open_session,
    m18_footprint,
    m19_retention,
)
from bench.measure import Report

BENCHMARKS: Mapping[str, Callable[[], Report]] = {
    m1_calls.ID: m1_calls.run,
    m2_turns.ID: m2_turns.run,
    m3_parked.ID: m3_parked.run,
    "M4": m4_m5_tasks.run_ends,
    "M5": m4_m5_tasks.run_cancels,
    "M4-CLUSTER": m4_m7_cluster.run_ends,
    "M5-CLUSTER": m4_m7_cluster.run_cancels,
    "M6-CLUSTER": m4_m7_cluster.run_first_events,
    "M7": m4_m7_cluster.run_takeover,
    m6_first_event.ID: m6_first_event.run,
    m8_append.ID: m8_append.run,
    m9_readers.ID: m9_readers.run,
    m10_idle.ID: m10_idle.run,
    m11_tasks.ID: m11_tasks.run,
    m12_start.ID: m12_start.run,
    m13_costs.ID: m13_costs.run,
    m14_long_sessions.ID: m14_long_sessions.run,
    m15_http_turns.ID: m15_http_turns.run,
    m16_first_text.ID: m16_first_text.run,
    m17_open_session.ID: m17_open_session.run,
    m17_feed.ID: m17_feed.run,
    m18_footprint.ID: m18_footprint.run,
    m19_retention.ID: m19_retention.run,
    console.ID: console.run,
}


def main(arguments: Sequence[str]) -> int:
    names = [each.upper() for each in arguments] or list(BENCHMARKS)
    unknown = [each for each in names if each not in BENCHMARKS]
    if unknown:
        print(f"There is no benchmark {', '.join(unknown)}: use {', '.join(BENCHMARKS)}.", file=sys.stderr)
        return 2
    screen = Console(width=120)
    for name in names:
        report = BENCHMARKS[name]()
        show(screen, report)
        report.write()
    return 0


def show(screen: Console, report: Report) -> None:
    table = Table(*report.columns, title=f"{report.id}  {report.title}", title_justify="left")
    for row in report.rows:
        table.add_row(*row)
    screen.print(table)
    screen.print(f"store: {report.store}")
    for note in report.notes:
        screen.print(note, markup=False)
    for target in report.targets:
        sign = "<=" if target.is_most else ">="
        verdict = "met" if target.is_met else "MISSED"
        screen.print(f"{verdict}: {target.name}: {target.value:.4g} (target {sign} {target.bound:g})")
    screen.print()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
