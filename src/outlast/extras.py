"""What `pip install outlast` leaves out, and what to type when it is missed."""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Literal

from outlast.errors import InvalidInput

Extra = Literal["postgres", "s3", "mcp"]
PACKAGES: Mapping[Extra, frozenset[str]] = {
    "postgres": frozenset({"asyncpg", "pgqueuer"}),
    "s3": frozenset({"obstore"}),
    "mcp": frozenset({"fastmcp", "mcp", "mcp_types"}),
}
"""The modules that each extra of the package brings."""


def need(extra: Extra, thing: str) -> None:
    """Raises `InvalidInput` that says what to install before `thing` can be used; imports nothing."""
    if any(find_spec(name) is None for name in PACKAGES[extra]):
        raise InvalidInput(f"{thing} needs packages that are not installed: {command(extra)}")


def command(extra: Extra) -> str:
    return f"pip install 'outlast[{extra}]'"


def missing(exc: BaseException) -> Extra | None:
    """The extra whose module an import did not find, if that is why it failed."""
    names = {each.name.partition(".")[0] for each in _chain(exc) if isinstance(each, ModuleNotFoundError) and each.name}
    return next((extra for extra, packages in PACKAGES.items() if names & packages), None)


def _chain(exc: BaseException | None) -> Iterator[BaseException]:
    while exc is not None:
        yield exc
        exc = exc.__cause__ or exc.__context__
