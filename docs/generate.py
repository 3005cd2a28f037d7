"""Writes the reference pages from the code: `python -m docs.generate`. A test fails when they are stale."""

from datetime import timedelta
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from docs.api_page import api_page
from docs.cli_page import cli_page
from docs.measurements_page import measurements_page
from docs.python_page import python_page
from docs.requirements_page import requirements_page
from docs.scale_page import scale_page
from outlast import Settings
from outlast.events.data.by_type import DATA
from outlast.events.types import CONTROL, TERMINAL, EventType

REFERENCE = Path(__file__).parent / "reference"
MADE = "<!-- Made by `make docs`; change the code instead. -->"


def pages() -> dict[Path, str]:
    """Each generated page and what it should hold."""
    made = {
        "events.md": events_page(),
        "settings.md": settings_page(),
        "python.md": python_page(),
        "cli.md": cli_page(),
        "api.md": api_page(),
        "measurements.md": measurements_page(),
        "scale.md": scale_page(),
    }
    paths = {REFERENCE / name: text for name, text in made.items()}
    paths[REFERENCE.parent / "requirements.md"] = requirements_page()
    return {path: f"{MADE}\n\n{text}" for path, text in paths.items()}


def events_page() -> str:
    lines = [
        "# Events",
        "",
        "Everything that happens in a session is an event in its log: `session.events()` replays them from any",
        "position and then follows. An event has `session_id`, `number`, `type`, `at`, `data`, and where they apply",
        "`turn_id` and `task_id`. Numbers rise within a session; they need not be consecutive. A reader passes over",
        "types that it does not know. A field with a question mark may be missing. `/openapi.json` has all of this as",
        "a union of schemas by `type`.",
    ]
    for noun, types in groupby(EventType, key=lambda each: each.partition(".")[0]):
        lines += ["", f"## {noun}", "", "| type | `data` |", "|---|---|"]
        lines += [f"| `{each}`{_mark(each)} | {_cell(_fields(DATA[each]))} |" for each in types]
    lines += [
        "",
        "\\* The end of a turn: exactly one of them stands in the log for each turn that ended.",
        "",
        "† Said to one reader only: not stored, without a number.",
    ]
    return "\n".join(lines) + "\n"


def _fields(data: type[Any]) -> str:
    """The fields by name, those that may be left out with a question mark, each with what is said of it."""
    schema = TypeAdapter(data).json_schema()
    needed = set(schema.get("required", ()))
    told = [
        f"{name}{'' if name in needed else '?'}{f' ({words})' if (words := each.get('description')) else ''}"
        for name, each in schema.get("properties", {}).items()
    ]
    return ", ".join(told) or "nothing"


def _mark(type_: EventType) -> str:
    if type_ in TERMINAL:
        return " \\*"
    return " †" if type_ in CONTROL else ""


def settings_page() -> str:
    lines = [
        "# Settings",
        "",
        "Give them as `Outlast(agent, settings=Settings(max_inbox=3))`, or as environment variables. An argument",
        "comes before a variable, a variable before the default. Durations are `timedelta` in Python; as a variable,",
        "seconds (`30`, `0.5`), ISO 8601 (`PT30S`) or `[days] hours:minutes:seconds` (`0:00:30`). `None` is written as",
        "that word. A variable `OUTLAST_...` that is none of these is told on stderr, with the nearest one that is.",
        "",
        "| setting | variable | default | meaning |",
        "|---|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        variable = f"{Settings.model_config.get('env_prefix', '')}{name}".upper()
        lines.append(f"| `{name}` | `{variable}` | {_value(field.default)} | {_cell(field.description or '')} |")
    return "\n".join(lines) + "\n"


def _value(default: Any) -> str:
    match default:
        case None:
            return "not set"
        case timedelta() if default < timedelta(seconds=1):
            return f"{default / timedelta(milliseconds=1):g} ms"
        case timedelta():
            return f"{default.total_seconds():g} s"
        case StrEnum():
            return f"`{default.value}`"
        case int() if not isinstance(default, bool):
            return f"{default:,}"
        case _:
            return f"`{default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    REFERENCE.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
