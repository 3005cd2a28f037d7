"""Draws docs/demo.svg by playing the demo: `python -m docs.picture`."""

import io
import re
import tempfile
from pathlib import Path

from rich.console import Console

from outlast.cli.demo.narration import narrating
from outlast.cli.demo.play import play

PICTURE = Path(__file__).parent / "demo.svg"


def main() -> None:
    console = Console(record=True, force_terminal=True, width=92, highlight=False, file=io.StringIO())
    with tempfile.TemporaryDirectory() as folder, narrating(console, is_fast=True, is_live=False) as narrator:
        console.print("$ outlast demo --play")
        # The agent keeps its usual pace, so that there is progress to see.
        play(narrator, Path(folder), is_fast=False)
    drawn = console.export_svg(title="outlast demo --play", unique_id="demo")
    # The fonts would be fetched from elsewhere; any font with fixed widths does.
    drawn = re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL).replace("Fira Code, monospace", "monospace")
    PICTURE.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
