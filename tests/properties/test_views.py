"""Whatever a turn does: its view is the same from any position on, and what the AI SDK is streamed agrees with it."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from outlast.events.event import Event
from outlast.events.views.turn_fold import TurnFold
from outlast.ids import TurnId
from outlast.protocols.ai_sdk.encoder import TurnEncoder
from outlast.protocols.ai_sdk.messages import MessageFold
from tests.support.views.compare import comparable
from tests.support.views.fixtures import SCENES, Log, events_of
from tests.support.views.reader import ViewReader, empty

WORDS = st.lists(st.text(alphabet="ab \N{WATER WAVE}", min_size=1, max_size=4), min_size=1, max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["text", "reasoning", "dropped", "killed"]), WORDS),
        st.tuples(st.sampled_from(["success", "failed", "retried", "interrupted", "parked", "open"]), WORDS),
        st.tuples(st.sampled_from(["steer", "wake", "progress", "again"]), WORDS),
    ),
    max_size=12,
)
ENDS = st.sampled_from(["completed", "closing", "failed", "stopped", "none"])


def log_of(steps: Sequence[tuple[str, Sequence[str]]], end: str) -> Sequence[Event]:
    """A turn that does these things, one after the other, and ends so."""
    log = Log()
    turn = log.begin("Go.")
    log.say(turn, "1.0.0", "I begin.")
    log.respond(turn)
    attempt = 1
    for number, (what, words) in enumerate(steps, 1):
        part, call_id = f"{attempt}.{number}.0", f"c{number}"
        match what:
            case "text" | "reasoning":
                log.say(turn, part, *words, kind=what)
                log.respond(turn)
            case "dropped":
                log.say(turn, part, *words, is_open=True)
                log.add("response.dropped", turn, reason="model_error", dropped=[part])
            case "killed":
                log.say(turn, part, *words, is_open=True)
                attempt += 1
                log.add("turn.resumed", turn, attempt=attempt, worker_id=None, dropped=[part])
            case "steer" | "wake":
                kind = "message" if what == "steer" else "wake"
                said = {"input_id": f"inp_{number}0", "kind": kind, "mode": "steer", "text": "".join(words)}
                log.add("input.accepted", **said)
                log.add("input.delivered", turn, **said)
            case _:
                log.ask(turn, part, call_id, "look", {"words": list(words)}, starts=what != "open")
                if what == "progress":
                    log.add("call.waiting", turn, call_id=call_id, tool="look", reason="It holds a lock.")
                    log.add("call.progress", turn, call_id=call_id, progress={"current": 1})
                if what == "again":  # it was running when its process died, and is run again
                    attempt += 1
                    log.add("turn.resumed", turn, attempt=attempt, worker_id=None, dropped=[])
                    log.add("call.started", turn, call_id=call_id, tool="look", args={"words": list(words)})
                outcome = {"progress": "success", "again": "success"}.get(what, what)
                task = {"task_id": f"tsk_{number}"} if what == "parked" else {}
                if what != "open":
                    log.answer(turn, call_id, "look", "".join(words), outcome=outcome, **task)
    match end:
        case "completed":
            log.complete(turn, "I begin.")
        case "closing":
            log.complete(turn, None, text="It goes on in the background.")
        case "failed":
            log.add("turn.failed", turn, kind="model_error", message="The model is away.")
        case "stopped":
            log.add("turn.stopped", turn, reason="user")
        case _:
            pass
    return log.events


def streamed(turn_id: str, events: Sequence[Event]) -> list[tuple[str, ...]]:
    """What a client of the AI SDK shows of the turn, without what it was told to hide."""
    encoder, fold = TurnEncoder(turn_id), MessageFold()
    for event in events:
        for chunk in encoder.add(event):
            fold.add(chunk)
    parts: list[dict[str, Any]] = fold.message["parts"]
    hidden = {name for each in parts if each["type"] == "data-dropped" for name in each["data"]["parts"]}
    shown: list[tuple[str, ...]] = []
    for each in parts:
        kind = each["type"]
        if kind in ("text", "reasoning"):
            name = each.get("providerMetadata", {}).get("outlast", {}).get("part")
            shown += [] if name in hidden else [(kind, each["text"])]
        elif kind.startswith("tool-") and "broken off" not in each.get("errorText", ""):
            shown.append(
                ("call", each["toolCallId"], {"output-available": "good", "output-error": "bad"}.get(each["state"], ""))
            )
        elif kind in ("data-message", "data-wake"):
            shown.append((kind.removeprefix("data-"), each["id"]))
    return shown


def folded(turn_id: str, events: Sequence[Event]) -> list[tuple[str, ...]]:
    """The same from the view. Who sent the message that began the turn shows it already."""
    fold = TurnFold(turn_id)
    for event in events:
        if event.turn_id == turn_id:
            fold.add(event)
    shown: list[tuple[str, ...]] = []
    for each in fold.turn["blocks"]:
        match each["type"]:
            case "text" | "reasoning" as kind:
                shown += [(kind, each["text"])] if each["text"] else []
            case "call":
                is_good = each["outcome"] in ("success", "parked")
                shown.append(
                    ("call", each["call_id"], ("good" if is_good else "bad") if each["state"] == "ended" else "")
                )
            case "note" if each["kind"] == "closing":
                shown.append(("text", each["text"]))
            case "message" | "wake" as kind:
                shown += [(kind, each["input_id"])] if shown or kind == "wake" else []
            case _:
                pass
    return shown


@settings(max_examples=40, deadline=None)
@given(STEPS, ENDS)
def test_what_the_ai_sdk_is_streamed_is_what_the_view_shows(steps: list[tuple[str, list[str]]], end: str) -> None:
    """K3, K6: the same texts, calls, messages and wakes, in the same order."""
    events = log_of(steps, end)
    assert streamed("trn_1", events) == folded("trn_1", events)


def test_the_fixtures_too() -> None:
    """K3, K6: each of their turns that has something to say."""
    for scene in SCENES:
        events = events_of(scene)
        for turn_id in dict.fromkeys(TurnId(each.turn_id) for each in events if each.turn_id is not None):
            assert streamed(turn_id, events) == folded(turn_id, events), (scene.__name__, turn_id)


@settings(max_examples=25, deadline=None)
@given(STEPS, ENDS, st.data())
def test_a_view_goes_on_from_any_event(steps: list[tuple[str, list[str]]], end: str, data: st.DataObject) -> None:
    """K6: what a reader has, with what comes, is the later view."""
    events = log_of(steps, end)
    at = data.draw(st.integers(0, len(events)))
    seen = comparable(ViewReader(empty()).add_all(events[:at]))
    seen["tasks"] = [*seen["tasks"].values()]
    assert comparable(ViewReader(seen).add_all(events)) == comparable(ViewReader(empty()).add_all(events))
