"""Which tests show which requirement: read from the docstrings of the tests, which name the rows they show."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

TESTS = Path(__file__).parent.parent / "tests"

SECTIONS: Mapping[str, str] = {
    "A": "Tools and calls",
    "B": "Background work",
    "C": "Sub-sessions",
    "D": "Sessions, turns, inbox",
    "E": "Streams",
    "F": "Schedules and monitors",
    "G": "Security and tenants",
    "H": "Costs and limits",
    "I": "Operating it",
    "J": "Sharing and reach",
    "K": "Interfaces",
}

ROWS: Mapping[str, str] = {
    "A1": "any pydantic-ai agent works unchanged; hints of tools; a stable idempotency key for each call",
    "A2": "outcomes: a value, files, a tool's error, an internal error, a connection or an input that is needed",
    "A3": "raw output, status and artifacts beside the result, and reading them back",
    "A4": "a time budget for each call; past it, or at a steering message, the call is parked",
    "A5": "a stopped call is cancelled, or goes on as a silent task that tells its real end",
    "A6": "a tool that requires another one to be called first",
    "A7": "permissions of a session: lists of tools, rules about arguments",
    "A8": "dry run",
    "A9": "long results in pieces",
    "A10": "circuit breaker and loop guard",
    "A11": "redacted logs and registered secrets",
    "A12": "narration: what a call does, in words for people",
    "A13": "approvals",
    "A14": "ready-made tools",
    "A15": "a limit for the schemas of Outlast's own tools, and a warning for large agents",
    "A16": "short instructions about background work, replaceable",
    "A17": "connections: an owner's credentials, sealed",
    "B1": "a parked call gives its handle at once",
    "B2": "check_background: list, wait, cancel, reply",
    "B3": "spawn_background, from the model, Python, HTTP and the command",
    "B4": "what a task carries, and its snapshots in events",
    "B5": "caps as durable queues that say their place",
    "B6": "cancel reaches the code and tells what really happened",
    "B7": "an end wakes its session; being needed is told at once",
    "B8": "questions and answers of a task; the first valid answer wins",
    "B9": "external operations, completed from outside",
    "B10": "what becomes of a task whose process died",
    "B11": "outgoing webhooks",
    "B12": "deadlines of progress",
    "C1": "run_sub_session: a session of its own, its answer inline or as a handle",
    "C2": "a typed outcome of a sub-session, never guessed",
    "C3": "what a sub-session does is seen, and its requests answered, in its ancestors; cancel cascades",
    "C4": "owner and permissions are inherited and only narrowed; depth and number are bounded",
    "D1": "a message starts a turn or waits, and is never lost; modes when busy; origin of each turn",
    "D2": "the inbox: bounded, visible, editable; idempotency keys",
    "D3": "steering messages stand where the model saw them",
    "D4": "order, context and files of messages",
    "D5": "Stop",
    "D6": "a disconnect stops nothing",
    "D7": "one fold gives the outcome; waiting for a turn or until settled",
    "D8": "a closing line after silence; reasoning apart from text",
    "D9": "retries of turns and of transient errors of models",
    "D10": "titles, search, metadata, external ids, archive, fork, regenerate, export, import, delete",
    "D11": "bound sessions",
    "D12": "files of sessions and messages",
    "D13": "limits of running and waiting turns",
    "D14": "the context window",
    "D15": "models and settings by agent, session and message",
    "D16": "ceilings of a turn by time and money",
    "E1": "streams from any position",
    "E2": "every type of event is stored and read back",
    "E3": "one terminal event for each turn",
    "E4": "slow readers are told; positions that are gone",
    "E5": "many readers, long replays",
    "E6": "one stream over all sessions of an owner",
    "F1": "cron, one time, or a delay, in a zone",
    "F2": "limits of schedules",
    "F3": "a fire is one transaction; missed fires and overlaps",
    "F4": "monitors",
    "F5": "schedules are listed, paused, triggered, edited, with their history",
    "G1": "owners by key, JWT or hook; safe on one machine",
    "G2": "another owner's ids are unknown on every route",
    "G3": "limits of requests; errors as problems; no 5xx from any input",
    "G4": "text cannot impersonate the runtime",
    "G5": "no outgoing request to private addresses",
    "G6": "settings and keys appear nowhere",
    "H1": "usage and cost of each turn",
    "H2": "daily and weekly limits of cost",
    "H3": "tenants see percent, administrators money",
    "H4": "tools report their cost",
    "I1": "diagnostics and actions for administrators",
    "I2": "health, metrics, traces, logs",
    "I3": "doctor, pause, backup",
    "I4": "retention",
    "I5": "deployment guide and settings, kept true",
    "J1": "read-only sharing of a session",
    "J2": "linking of chat platforms",
    "K1": "the command",
    "K2": "the web console",
    "K3": "protocols: AI SDK, MCP, OpenAI Responses, AG-UI, A2A",
    "K4": "MCP both ways",
    "K5": "the library does all that the server does",
    "K6": "typed schemas of events, handles and lists in OpenAPI; a session as one folded view with a position",
}

MISSING: Mapping[str, str] = {
    "H2": "The daily limit is there; weekly limits and tiers are not.",
    "I1": "Not there yet.",
    "J1": "Not there yet.",
    "J2": "Not there yet.",
    "K2": "Sessions and chat with files, background work beside it, tasks, what needs you, schedules, webhooks, "
    "usage, keys and connections. Sharing is not there yet.",
    "K3": "The AI SDK only.",
    "K4": "MCP servers can be used by agents; serving and wrapping are not there yet.",
}
"""What is not there, or not all of it."""

_ROW = re.compile(r"\b[A-K]\d{1,2}\b")


def requirements_page() -> str:
    shown = shown_by()
    lines = [
        "# Requirements and the tests that show them",
        "",
        "Each test names the rows it shows in its docstring. What is not there yet is said in its row.",
    ]
    for letter, title in SECTIONS.items():
        lines += ["", f"## {letter}. {title}", "", "| row | what | tests |", "|---|---|---|"]
        lines += [
            f"| {row} | {what}{_missing(row)} | {_files(shown.get(row, set()))} |"
            for row, what in ROWS.items()
            if row.startswith(letter)
        ]
    return "\n".join(lines) + "\n"


def shown_by() -> dict[str, set[str]]:
    """The test files of each row that a docstring names."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(TESTS.rglob("test_*.py")):
        name = path.relative_to(TESTS).as_posix()
        for docstring in _docstrings(ast.parse(path.read_text(encoding="utf-8"))):
            for row in _ROW.findall(docstring):
                found[row].add(name)
    return found


def _docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield ast.get_docstring(node) or ""


def _missing(row: str) -> str:
    return f". **{MISSING[row]}**" if row in MISSING else ""


def _files(names: set[str]) -> str:
    return ", ".join(f"`{each}`" for each in sorted(names)) or "–"
