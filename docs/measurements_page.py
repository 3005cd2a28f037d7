"""The page of what was measured last, from what the benchmarks wrote."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "bench" / "results"
_INTRODUCTION = """# Measurements

What each benchmark found when it was last run; [benchmarks](../benchmarks.md) says what they do and where the time
goes. `load` is the machine's load average when the result was written: on two cores, numbers at a load above 2 show how
long work waited for a core more than what it costs.

| id | what | number | target | | load | when |
|---|---|---|---|---|---|---|"""


def measurements_page() -> str:
    lines = [_INTRODUCTION]
    for path in sorted(RESULTS.glob("*.json"), key=_order):
        lines += _rows(json.loads(path.read_text()))
    return "\n".join(lines) + "\n"


def _rows(result: dict[str, Any]) -> list[str]:
    where = f"{result['machine'].get('load', '?')} | {result['at'][:16].replace('T', ' ')}"
    return [
        f"| {result['id']} | {_cell(result['title'])}: {_cell(each['name'])} | {each['value']:g} "
        f"| {'at most' if each['is_most'] else 'at least'} {each['bound']:g} "
        f"| {'met' if each['is_met'] else 'missed'} | {where} |"
        for each in result["targets"]
    ]


def _order(path: Path) -> tuple[int, str]:
    digits = "".join(each for each in path.stem.partition("-")[0] if each.isdigit())
    return int(digits or 0), path.stem


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
