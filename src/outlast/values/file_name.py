"""Names of files: a name is not a path, and shows as what it is."""

import re
import unicodedata

from outlast.errors import InvalidInput

LONGEST = 200
_TYPE = re.compile(r"(?a)[\w.+-]{1,100}/[\w.+-]{1,100}")
BINARY = "application/octet-stream"


def wrong_with(name: str) -> str | None:
    """Why it can be no name of a file; None for one that can."""
    if not name.strip() or name != name.strip():
        return "it is empty, or begins or ends with a space"
    if len(name) > LONGEST:
        return f"it has more than {LONGEST} characters"
    if "/" in name or "\\" in name:
        return "it is a path: files have names only, without / and \\"
    if name.startswith("."):
        return "it begins with a dot"
    if any(unicodedata.category(each) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") for each in name):
        return "it has characters that do not show"
    return None


def check_name(name: str) -> str:
    """Raises `InvalidInput` that says what is wrong with it."""
    if (wrong := wrong_with(name)) is not None:
        shown = name[:80].encode("ascii", "backslashreplace").decode()
        raise InvalidInput(f"{shown!r} is no name of a file: {wrong}.", field="name")
    return name


def fitting(name: str) -> str:
    """The nearest name that can be one, of what others called a file."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    shown = "".join("_" if wrong_with(f"a{each}a") else each for each in last)
    return shown.strip().lstrip(". ")[:LONGEST].strip() or "file"


def check_type(media_type: str) -> str:
    """In lower case and without parameters. Raises `InvalidInput`."""
    plain = media_type.partition(";")[0].strip().lower()
    if _TYPE.fullmatch(plain) is None:
        raise InvalidInput(f"{media_type[:80]!r} is no media type: write it as image/png.", field="media_type")
    return plain


def fitting_type(media_type: str) -> str:
    plain = media_type.partition(";")[0].strip().lower()
    return plain if _TYPE.fullmatch(plain) else BINARY
