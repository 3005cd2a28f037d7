"""What a mutant is."""

from dataclasses import dataclass

# A mutant may make a test wait for ever, in a way that no exception ends.
_ENDS = ("--timeout=30", "--timeout-method=thread")


@dataclass(frozen=True, slots=True)
class Edit:
    """`old` stands exactly once in `file`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Test:
    """A pytest node, as pytest spells it."""

    node: str

    @property
    def name(self) -> str:
        return self.node

    @property
    def command(self) -> list[str]:
        return ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *_ENDS, self.node]


@dataclass(frozen=True, slots=True)
class Chaos:
    """A few kills at one place; `finds` is the total of the report that must not be zero."""

    place: str
    finds: str
    kills: int = 6

    @property
    def name(self) -> str:
        return f"chaos at {self.place}: {self.finds}"

    @property
    def command(self) -> list[str]:
        return ["-m", "chaos", "--kills", str(self.kills), "--seed", "1", "--at", self.place, "--results", "."]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A sabotage of one promise, and who catches it."""

    promise: str
    name: str
    edits: tuple[Edit, ...]
    caught_by: Test | Chaos
