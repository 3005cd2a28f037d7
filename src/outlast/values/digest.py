"""Values in few words: arguments that tell one card from another, and how a result begins."""

from typing import Any, cast

from pydantic_core import from_json, to_json

_NAMES = 20
_LONGEST = 120


def object_of(args: Any) -> Any:
    """Arguments as an object, where they are one: models write them as JSON."""
    if not isinstance(args, str):
        return args
    if not args.strip():
        return {}
    try:
        found: Any = from_json(args, allow_inf_nan=False)
    except ValueError:
        return args
    return cast(dict[str, Any], found) if isinstance(found, dict) else args


def digest(args: Any) -> Any:
    """The same with its long values cut, and not too many of them."""
    if not isinstance(args, dict):
        return args if args is None else _short(args)
    fields = cast(dict[str, Any], args)
    return {_cut(name): _short(value) for name, value in list(fields.items())[:_NAMES]}


def preview(value: Any, longest: int) -> str | None:
    """How a stored value begins, in one text; None where there is none."""
    if value is None:
        return None
    if isinstance(value, dict):
        kept = cast(dict[str, Any], value).get("$file")
        if isinstance(kept, dict):
            value = str(cast(dict[str, Any], kept).get("preview") or "")
    text = value if isinstance(value, str) else to_json(value, fallback=str).decode()
    return _cut(text, longest)


def _short(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _cut(value)
    text = preview(value, _LONGEST * 2) or ""
    return value if len(text) <= _LONGEST else _cut(text)


def _cut(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
