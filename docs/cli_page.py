"""The reference of the command, from the functions that are its verbs."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

from outlast.cli import target
from outlast.cli.exits import Exit
from outlast.cli.main import app

_COMMON = ("url", "token", "as_json")


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    kind: Any
    info: ParameterInfo
    default: Any

    @property
    def is_argument(self) -> bool:
        return isinstance(self.info, ArgumentInfo)

    @property
    def is_needed(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def shown(self) -> str:
        """As a person types it."""
        if self.is_argument:
            return self.info.metavar or self.name.rstrip("_").upper()
        given = _names(self.info) or [f"--{self.name.rstrip('_').replace('_', '-')}"]
        return ", ".join(given) if self.kind is bool else f"{', '.join(given)} {self._value}"

    @property
    def _value(self) -> str:
        if get_origin(self.kind) is Literal:
            return "|".join(get_args(self.kind))
        names = {int: "NUMBER", float: "NUMBER", Path: "FILE"}
        return self.info.metavar or names.get(self.kind, "TEXT")

    @property
    def said(self) -> str:
        said = self.info.help or ""
        if self.is_argument and get_origin(self.kind) is Literal:
            said += f" One of {', '.join(f'`{each}`' for each in get_args(self.kind))}."
        if self.kind is not bool and not self.is_needed and self.default is not None and self.default != "":
            said += f" Default: `{self.default}`."
        return said.strip()


def cli_page() -> str:
    return "\n".join([*_head(), *_verbs(app, "outlast")]) + "\n"


def _head() -> Iterator[str]:
    yield from (
        "# The command",
        "",
        "`outlast --help` lists the verbs, `outlast VERB --help` tells what each takes; `outlast --install-completion`",
        "lets your shell complete them.",
        "",
        "Verbs that ask a server find the one that was started in this folder (`outlast serve` leaves an address and a",
        "key beside its database, readable by you only), or take:",
        "",
        "| option | variable | meaning |",
        "|---|---|---|",
    )
    for kind in (target.Url, target.Token, target.AsJson):
        info = get_args(kind)[1]
        variable = f"`{info.envvar}`" if info.envvar else ""
        metavar = f" {info.metavar}" if info.metavar else ""
        yield f"| `{_names(info)[0]}{metavar}` | {variable} | {info.help} |"
    yield from ("", "## Exit codes", "", "| code | meaning |", "|---|---|")
    yield from (f"| {code.value} | {code.meaning} |" for code in Exit)


def _verbs(group: typer.Typer, path: str) -> Iterator[str]:
    for command in group.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__.rstrip("_")
        yield from _verb(f"{path} {name}", command.callback)
    for each in group.registered_groups:
        assert each.typer_instance is not None
        yield from _verbs(each.typer_instance, f"{path} {each.name}")


def _verb(path: str, callback: Callable[..., Any]) -> Iterator[str]:
    parameters = list(_parameters(callback))
    own = [each for each in parameters if each.name not in _COMMON]
    arguments = [each.shown if each.is_needed else f"[{each.shown}]" for each in own if each.is_argument]
    yield from ("", f"## `{' '.join([path, *arguments])}`", "")
    for paragraph in inspect.cleandoc(callback.__doc__ or "").split("\n\n"):
        yield from (" ".join(paragraph.split()), "")
    if own:
        yield from ("| | |", "|---|---|")
        yield from (f"| `{_cell(each.shown)}` | {_cell(each.said)} |" for each in own)
    common = [f"`--{name.removeprefix('as_')}`" for name in _COMMON if name in {each.name for each in parameters}]
    if common:
        yield from ("", f"And {', '.join(common)}.") if own else (f"Takes {', '.join(common)}.",)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _names(info: ParameterInfo) -> list[str]:
    """Inside `Annotated` the first name stands where the default used to be."""
    return [each for each in (info.default, *(info.param_decls or ())) if isinstance(each, str)]


def _parameters(callback: Callable[..., Any]) -> Iterator[Parameter]:
    kinds = get_type_hints(callback, include_extras=True)
    for name, parameter in inspect.signature(callback).parameters.items():
        assert get_origin(kinds[name]) is Annotated
        kind, info = get_args(kinds[name])[:2]
        assert isinstance(info, ArgumentInfo | OptionInfo)
        yield Parameter(name, _without_none(kind), info, parameter.default)


def _without_none(kind: Any) -> Any:
    if get_origin(kind) not in (Union, UnionType):
        return kind
    [rest] = [each for each in get_args(kind) if each is not type(None)]
    return rest
