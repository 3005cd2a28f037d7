"""The first words of a session's first message: they tell sessions apart that have no title."""

LONGEST = 80


def of_text(text: str) -> str:
    """In one line; what is left out is marked."""
    line = " ".join(text.strip()[: LONGEST * 2].split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
