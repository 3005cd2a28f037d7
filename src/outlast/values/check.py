"""What no store and no wire takes is refused before anything is done with it."""

from outlast.errors import InvalidInput


def check_characters(text: str, what: str) -> None:
    """Refuse what no store and no wire takes."""
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise InvalidInput(f"The {what} is not valid Unicode: it holds a lone surrogate.") from exc
    if "\x00" in text:
        raise InvalidInput(f"The {what} holds a NUL character: remove it.")
