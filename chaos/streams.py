"""What a reader was told against what the log holds in the end: the same, in order, nothing twice."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import cast

from chaos.evidence import LogEvent, Row

_PARTS = frozenset({"part.started", "part.delta", "part.ended"})

PartId = tuple[str | None, str]


def faults(log: Sequence[LogEvent], after: int, told: Sequence[LogEvent]) -> Iterator[str]:
    """Each way in which a reader that began at `after` was told something else than the log says."""
    numbers = [event.number for event in told]
    if any(second <= first for first, second in zip([after, *numbers], numbers, strict=False)):
        yield f"numbers do not rise strictly: {numbers}"
    expected = [_fact(event) for event in log if event.number > after and event.type not in _PARTS]
    facts = [_fact(event) for event in told if event.type not in _PARTS]
    if facts != expected:
        yield _difference(facts, expected)
    dropped = set(_dropped(log))
    yield from _part_faults(
        [event for event in log if _part_of(event) not in dropped],
        after,
        [event for event in told if _part_of(event) not in dropped],
    )


def log_faults(log: Sequence[LogEvent], said: Sequence[str]) -> Iterator[str]:
    """Each way in which a log by itself is not whole; `said` are the texts that stand in history."""
    ends = [event for event in log if event.type == "part.ended"]
    starts = [event for event in log if event.type == "part.started"]
    texts = {part: _text(deltas) for part, deltas in _deltas(log).items()}
    if Counter(map(_part_of, starts)) != Counter(map(_part_of, ends)):
        yield f"parts that began or ended alone: {set(map(_part_of, starts)) ^ set(map(_part_of, ends))}"
    for event in ends:
        length = len(texts.get((event.turn_id, event.data["part"]), ""))
        if length != event.data["length"]:
            yield f"{_part_of(event)} has {length} characters of {event.data['length']}"
    spoken = Counter(texts.get((event.turn_id, event.data["part"]), "") for event in starts if _is_text(event))
    if spoken != Counter(said):
        yield f"the log says {spoken - Counter(said)} and history {Counter(said) - spoken}"


def _is_text(event: LogEvent) -> bool:
    return event.data["kind"] == "text"


def _part_faults(log: Sequence[LogEvent], after: int, told: Sequence[LogEvent]) -> Iterator[str]:
    """Folding may change how a text is cut into events, never the text or where it begins and ends."""
    for kind in ("part.started", "part.ended"):
        expected = [_fact(event) for event in log if event.number > after and event.type == kind]
        facts = [_fact(event) for event in told if event.type == kind]
        if facts != expected:
            yield _difference(facts, expected)
    texts, pieces = _deltas(log), _deltas(told)
    begun = {_part_of(event) for event in told if event.type == "part.started"}
    for part, events in pieces.items():
        start: int = 0 if part in begun else events[0].data["offset"]
        position = start
        for event in events:
            if event.data["offset"] != position:
                yield f"{part}: told offset {event.data['offset']} at {position}"
            position += len(event.data["text"])
        said, whole = _text(events), _text(texts.get(part, []))
        if whole[start:] != said:
            yield f"{part}: told {said!r} from {start}, but it is {whole!r}"
    for part, events in texts.items():
        if events[-1].number > after and part not in pieces:
            yield f"{part}: nothing was told of it"


def _text(deltas: Sequence[LogEvent]) -> str:
    return "".join(event.data["text"] for event in deltas)


def _deltas(events: Sequence[LogEvent]) -> dict[PartId, list[LogEvent]]:
    found: dict[PartId, list[LogEvent]] = defaultdict(list)
    for event in events:
        if event.type == "part.delta":
            found[(event.turn_id, event.data["part"])].append(event)
    return dict(found)


def _dropped(log: Sequence[LogEvent]) -> Iterator[PartId]:
    for event in log:
        for part in event.data.get("dropped", ()):
            yield (event.turn_id, part)


def _part_of(event: LogEvent) -> PartId | None:
    return (event.turn_id, event.data["part"]) if event.type in _PARTS else None


def _fact(event: LogEvent) -> tuple[int, str, str | None, str]:
    """Without what it cost: that is in the log, and left out of what tenants are told."""
    data = _without_cost(event.data)
    if isinstance(data.get("task"), dict):
        data = {**data, "task": _without_cost(data["task"])}
    return (event.number, event.type, event.turn_id, repr(data))


def _without_cost(data: Row) -> Row:
    used = data.get("usage")
    if not isinstance(used, dict):
        return data
    return {**data, "usage": {name: value for name, value in cast(Row, used).items() if name != "cost_microdollars"}}


def _difference(told: Sequence[object], expected: Sequence[object]) -> str:
    missing = [each for each in expected if each not in told]
    extra = [each for each in told if each not in expected]
    return f"never told: {missing[:3]}; told but not in the log: {extra[:3]}; in another order: {not missing + extra}"
