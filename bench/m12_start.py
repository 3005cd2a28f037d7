"""M12: `outlast serve` until it is ready."""

import tempfile
from pathlib import Path

from bench.measure import Report, Target, quantile
from bench.server_process import serving

ID = "M12"
_COUNT = 10


def run() -> Report:
    report = Report(
        ID,
        "`outlast serve` -> ready",
        "SQLite file, new each time, and the same one again",
        columns=("what", "p50", "max"),
    )
    new, again = list[float](), list[float]()
    for _ in range(_COUNT):
        with tempfile.TemporaryDirectory() as folder:
            for seconds in (new, again):
                with serving(Path(folder)) as place:
                    seconds.append(place.ready_seconds)
    for name, each in (("new database", new), ("known database", again)):
        report.rows.append((name, f"{quantile(each, 0.5):.2f} s", f"{max(each):.2f} s"))
    report.numbers = {
        "new_p50_s": quantile(new, 0.5),
        "known_p50_s": quantile(again, 0.5),
        "max_s": max([*new, *again]),
    }
    report.targets = [Target("known database, p50 s", quantile(again, 0.5), 1.5, is_most=True)]
    return report
