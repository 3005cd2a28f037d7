"""Finding the agent that a command is to run: `app.py`, `app.py:name`, `package.module` or `package.module:name`."""

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, cast

from pydantic_ai import Agent

from outlast import extras
from outlast.errors import OutlastError
from outlast.runtime import Outlast

DEFAULT_DATABASE = "outlast.db"
_PACKAGE = str(Path(__file__).parents[1])
AnyOutlast: TypeAlias = Outlast[Any, Any]


class AppNotFound(OutlastError):
    """The file or module does not lead to exactly one agent."""

    code = "app_not_found"


def load_app(target: str, *, database: str | None = None) -> AnyOutlast:
    """The one `Outlast` there, or the one `Agent` wrapped in one. The file's own code runs, as with `python app.py`."""
    place, _, name = target.partition(":")
    module = _load_file(Path(place)) if _is_file_name(place) else _load_module(place)
    found = _named(module, place, name) if name else _only(module, place)
    if isinstance(found, Agent):
        return Outlast(found, database=database or DEFAULT_DATABASE)
    if database is not None:
        raise AppNotFound(f"{place} has an Outlast, which names its own database: leave --database out.")
    return found


def _is_file_name(place: str) -> bool:
    return place.endswith(".py") or "/" in place


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise AppNotFound(f"There is no file {path}.")
    # As Python does for a script: modules beside the file can be imported.
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise AppNotFound(f"{path} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as exc:
        raise AppNotFound(f"{path} failed while it was imported:\n{_trace(exc)}") from exc
    return module


def _load_module(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        if exc.name is not None and (name == exc.name or name.startswith(f"{exc.name}.")):
            raise AppNotFound(f"There is no module {name!r}. A file is named with its ending: {name}.py") from exc
        raise AppNotFound(f"{name} failed while it was imported:\n{_trace(exc)}") from exc
    except (Exception, SystemExit) as exc:
        raise AppNotFound(f"{name} failed while it was imported:\n{_trace(exc)}") from exc


def _trace(exc: BaseException) -> str:
    """Where in the user's code it failed: without the frames of the import itself, and of what we raise on purpose."""
    own = [frame for frame in traceback.extract_tb(exc.__traceback__) if not _is_import_machinery(frame.filename)]
    if isinstance(exc, OutlastError):
        own = [frame for frame in own if not frame.filename.startswith(_PACKAGE)]
    lines = [*traceback.format_list(own), *traceback.format_exception_only(exc)]
    extra = extras.missing(exc)
    advice = "" if extra is None else f"\nTo have it: {extras.command(extra)}"
    return "".join(lines).rstrip() + advice


def _is_import_machinery(filename: str) -> bool:
    return filename == __file__ or filename.startswith("<frozen importlib") or filename == importlib.__file__


def _named(module: ModuleType, place: str, name: str) -> AnyOutlast | Agent[Any, Any]:
    if not hasattr(module, name):
        raise AppNotFound(f"{place} has no {name!r}. {_candidates(module)}")
    found: Any = getattr(module, name)
    if isinstance(found, Outlast | Agent):
        return cast(AnyOutlast | Agent[Any, Any], found)
    kind = type(found).__name__
    raise AppNotFound(f"{name!r} in {place} is neither an Outlast nor an Agent, but of type {kind}.")


def _only(module: ModuleType, place: str) -> AnyOutlast | Agent[Any, Any]:
    """An Outlast counts before agents: it is made from one."""
    for kind in (Outlast, Agent):
        found = _of_kind(module, kind)
        distinct = {id(each): each for each in found.values()}
        if len(distinct) == 1:
            return next(iter(distinct.values()))
        if distinct:
            names = ", ".join(found)
            first = next(iter(found))
            raise AppNotFound(
                f"{place} has several of type {kind.__name__}: {names}. Choose one, such as {place}:{first}"
            )
    raise AppNotFound(f"{place} has no Outlast and no pydantic_ai.Agent at its top level.")


def _of_kind(module: ModuleType, kind: type[Any]) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if isinstance(value, kind) and not name.startswith("_")}


def _candidates(module: ModuleType) -> str:
    names = [*_of_kind(module, Outlast), *_of_kind(module, Agent)]
    return f"It has: {', '.join(names)}." if names else "It has no Outlast and no pydantic_ai.Agent either."
