"""Draws docs/explanation/design.svg: `python -m docs.design_picture`. It follows the reader's light or dark theme."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

PICTURE = Path(__file__).parent / "explanation" / "design.svg"

_WIDTH, _HEIGHT = 980, 560
_STYLE = """\
  svg { --paper: #ffffff; --box: #f4f6f8; --ours: #e6f0fb; --line: #8794a3; --ink: #17202b; --soft: #4d5a68; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #14181d; --box: #1f262e; --ours: #1b3247; --line: #7b8a9a; --ink: #eef2f6; --soft: #b3bfcb; }
  }
  .paper { fill: var(--paper); }
  rect.part { fill: var(--ours); stroke: var(--line); }
  rect.other { fill: var(--box); stroke: var(--line); stroke-dasharray: 5 3; }
  rect.truth { fill: var(--ours); stroke: var(--ink); stroke-width: 2; }
  text { fill: var(--ink); font: 12.5px system-ui, sans-serif; }
  text.name { font: 600 14px ui-monospace, monospace; }
  text.soft { fill: var(--soft); }
  path { fill: none; stroke: var(--line); stroke-width: 1.6; marker-end: url(#tip); }
  path.hint { stroke-dasharray: 3 4; }
  marker path { fill: var(--line); stroke: none; marker-end: none; }"""


@dataclass(frozen=True, slots=True)
class Box:
    """A part: `kind` is `part` (a folder of ours), `truth` (the database) or `other` (what a user brings)."""

    x: int
    y: int
    width: int
    height: int
    name: str
    lines: Sequence[str] = ()
    kind: str = "part"

    def svg(self) -> str:
        middle = self.x + self.width // 2
        top = self.y + (self.height - 18 * len(self.lines)) // 2 + 5
        said = [_text(middle, top, self.name, "name")]
        said += [_text(middle, top + 18 * at, line) for at, line in enumerate(self.lines, 1)]
        frame = (
            f'<rect class="{self.kind}" x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="7"/>'
        )
        return "\n".join([frame, *said])


@dataclass(frozen=True, slots=True)
class Way:
    """An arrow along its points. A hint is only told: lost, it costs time and nothing else."""

    points: Sequence[tuple[int, int]]
    lines: Sequence[str] = ()
    at: tuple[int, int] = (0, 0)
    is_hint: bool = False

    def svg(self) -> str:
        drawn = "M" + " L".join(f"{x} {y}" for x, y in self.points)
        kind = ' class="hint"' if self.is_hint else ""
        x, y = self.at
        said = [_text(x, y + 16 * at, line, "soft") for at, line in enumerate(self.lines)]
        return "\n".join([f'<path{kind} d="{drawn}"/>', *said])


def _text(x: int, y: int, words: str, kind: str = "") -> str:
    chosen = f' class="{kind}"' if kind else ""
    return f'<text{chosen} x="{x}" y="{y}" text-anchor="middle">{escape(words)}</text>'


_MOVES = (
    "",
    "inbox: accept, edit, remove",
    "turn: start, claim, deliver,",
    "hold, requeue, end",
    "task_moves: make, change,",
    "cancel, requeue, end, wake",
    "many_tasks: accept, claim, end",
    "creation, deletion, pause",
    "verdicts: a person settles",
)
BOXES = (
    Box(20, 20, 230, 70, "whoever asks", ("a program, a browser,", "the command, a client"), "other"),
    Box(20, 150, 230, 70, "api/ · protocols/", ("HTTP, and other protocols", "as projections of the log")),
    Box(20, 280, 230, 70, "handles/", ("sessions, a session, a turn,", "tasks, the feed")),
    Box(20, 450, 230, 90, "events/", ("numbered facts: a stream", "replays, then follows")),
    Box(375, 20, 230, 330, "transitions/", ("each state change is one function", "of a transaction", *_MOVES)),
    Box(375, 450, 230, 90, "store/", ("the only truth: SQLite file", "or PostgreSQL"), "truth"),
    Box(730, 20, 230, 70, "your agent", ("pydantic-ai, unchanged:", "model, tools, MCP servers"), "other"),
    Box(730, 150, 230, 70, "agents/ · calls/", ("around the agent; each call", "has a budget, then is parked")),
    Box(730, 280, 230, 70, "runs/", ("an attempt of a turn or a task;", "parked calls go on here")),
    Box(730, 450, 230, 90, "engines/ · duties/", ("embedded, or distributed: jobs,", "presence, sweep; what recurs")),
)
WAYS = (
    Way([(135, 90), (135, 148)]),
    Way([(135, 220), (135, 278)]),
    Way([(250, 315), (373, 315)], ["send, stop,", "cancel, settle"], (312, 286)),
    Way([(490, 350), (490, 448)], ["one commit:", "rows, events, jobs"], (550, 396)),
    Way([(375, 485), (252, 485)], ["signals: look"], (313, 474), is_hint=True),
    Way([(135, 450), (135, 352)], ["pages of the log"], (190, 404)),
    Way([(605, 485), (728, 485)], ["work: begin"], (667, 474), is_hint=True),
    Way([(845, 450), (845, 352)], ["claim and begin"], (898, 404)),
    Way([(730, 315), (607, 315)], ["claim, deliver,", "journal, park, end"], (668, 286)),
    Way([(845, 280), (845, 222)]),
    Way([(845, 150), (845, 92)]),
)


def drawn() -> str:
    """The whole picture."""
    parts = [each.svg() for each in (*WAYS, *BOXES)]
    title = "The parts of Outlast: whoever asks and whoever runs meet only in transactions on one database"
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
            f"<title>{title}</title>",
            f"<style>\n{_STYLE}\n</style>",
            f'<defs>{tip}<path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
            f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def main() -> None:
    PICTURE.write_text(drawn(), encoding="utf-8")


if __name__ == "__main__":
    main()
