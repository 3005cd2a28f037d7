"""The first words of a session's first message: they tell sessions apart that have no title."""

LONGEST = 80
_TITLE = 60


def of_text(text: str) -> str:
    """In one line; what is left out is marked."""
    line = " ".join(text.strip()[: LONGEST * 2].split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def title_of(preview: str | None) -> str | None:
    """What a session is called that nobody gave a title: whole words of how it begins."""
    if preview is None or len(preview) <= _TITLE:
        return preview
    words = preview[: _TITLE - 1].rpartition(" ")[0] or preview[: _TITLE - 1]
    return words.rstrip(" ,;:.-–—") + "…"
