"""The server of `outlast demo`: what it runs, and what it says to type."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outlast.cli.demo.bookkeeper import make_agent
from outlast.cli.terminal.command import typed
from outlast.runtime import Outlast
from outlast.settings import Settings


def what_to_type() -> Sequence[str]:
    outlast = typed()
    return (
        "Open the link, or type in another terminal, in this folder:",
        f"  {outlast} send --new --wait 'Pay the invoice from Nordlys.'   # waits until a person allows it",
        f"  {outlast} approvals; {outlast} approve TASK   # the person: here, or in the page",
        f"  {outlast} send --wait 'Was any invoice of this year paid twice?'   # goes on in the background",
        f"  {outlast} files list SESSION; {outlast} files get FILE   # what it found, once it is done",
        f"  {outlast} send --turn 'Check 2025 as well, and do not wait for it.'   # work that the model spawns",
        f"  {outlast} send --turn 'Book the receipt of 59 EUR.'; {outlast} reply TASK travel   # it asks what for",
        f"  {outlast} send --wait 'Find the cheapest supplier of paper.'   # in a sub-session of its own",
        f"  {outlast} send --turn 'Check the mailbox every morning at 8.'   # a schedule: {outlast} schedules list",
        f"  {outlast} send --turn 'Tell me when the account is below 1,000.'   # a monitor; two minutes later it is",
        f"  {outlast} ps; {outlast} logs -f TASK; {outlast} attach SESSION",
        "Kill it with Ctrl-C or kill -9 while it works, start it again, and see it go on.",
    )


def make_app(database: Path) -> Outlast[Any, Any]:
    # Whoever tries it should see what to type, not a line for each request.
    return Outlast(make_agent(), database=database, settings=Settings(log_level="warning"))
