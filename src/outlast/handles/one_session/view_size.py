"""A page of a view is at most 1 MiB: what is larger is shown as its beginning, with a link to the whole."""

from collections.abc import Sequence
from typing import Any

from pydantic_core import to_json

from outlast.events.views.blocks import Block, preview
from outlast.ids import SessionId

PAGE_BYTES = 1024 * 1024
_BESIDE = 256 * 1024
"""For the inbox, and for the tasks: each."""
_CAPS = (64 * 1024, 16 * 1024, 4 * 1024, 1024, 256)
_SHOWN = 200
"""Characters of a value that is shown as its beginning."""
_VALUES = ("args", "result", "progress", "artifacts", "details")
_SPARE = 1024
Object = dict[str, Any]


def fitted(page: Object, *, session_id: SessionId, has_more: bool) -> Object:
    """The page with as many of its last turns as fit; `next` is the first of them if there are more before it."""
    _fit_inbox(page["inbox"], session_id)
    _fit_tasks(page)
    turns: list[Object] = page["turns"]
    page["turns"] = []
    room = PAGE_BYTES - _size(page) - _SPARE
    fitting: list[Object] = []
    for turn in reversed(turns):
        size = _size(turn) + 1
        if size > room and fitting:
            has_more = True
            break
        if size > room:
            _shrink(turn, room, session_id)
            size = _size(turn) + 1
        room -= size
        fitting.append(turn)
    page["turns"] = fitting[::-1]
    page["next"] = fitting[-1]["id"] if fitting and has_more else None
    return page


def _fit_inbox(inbox: Sequence[Object], session_id: SessionId) -> None:
    for cap in _CAPS:
        if _size(inbox) <= _BESIDE:
            return
        for each in inbox:
            _cut_text(each, cap, f"/v1/sessions/{session_id}/inbox/{each['input_id']}")


def _fit_tasks(page: Object) -> None:
    """The newest stay."""
    found: list[Object] = page["tasks"]
    sizes = [_size(each) + 1 for each in found]
    total = sum(sizes)
    first = 0
    while total > _BESIDE and first < len(found):
        total -= sizes[first]
        first += 1
    page["tasks"] = found[first:]
    page["tasks_left_out"] += first


def _shrink(turn: Object, room: int, session_id: SessionId) -> None:
    """Cut the largest values of a turn first; if that is not enough, leave out its first blocks."""
    path = f"/v1/sessions/{session_id}"
    for cap in _CAPS:
        for number, block in enumerate([*turn["kept"], *turn["blocks"]]):
            _cut(block, cap, f"{path}/turns/{turn['id']}/blocks/{number}")
        _cut_text(turn, cap, f"{path}/result?turn_id={turn['id']}")
        _cut_value(turn, "output", cap, f"{path}/result?turn_id={turn['id']}")
        if _size(turn) <= room:
            return
    over = _size(turn) - room
    for name in ("kept", "blocks"):
        found: list[Block] = turn[name]
        count = 0
        while over > 0 and count < len(found):
            over -= _size(found[count]) + 1
            count += 1
        turn[name] = found[count:]
        turn["left_out"] += count


def _cut(block: Block, cap: int, href: str) -> None:
    _cut_text(block, cap, href)
    for name in _VALUES:
        _cut_value(block, name, cap, href)


def _cut_text(holder: Object, cap: int, href: str) -> None:
    text: str | None = holder.get("text")
    if text is None or len(text) * 4 <= cap:
        return
    size = len(text.encode())
    if size > cap:
        known = holder.get("cut")
        holder["text"] = text.encode()[: cap // 2].decode(errors="ignore")
        holder["cut"] = known or {"bytes": size, "href": href}


def _cut_value(holder: Object, name: str, cap: int, href: str) -> None:
    value = holder.get(name)
    if value is None or (size := _size(value)) <= cap:
        return
    if name == "artifacts":
        holder[name] = value[: max(1, len(value) * cap // size)]
        return
    beginning = value if isinstance(value, str) else to_json(value).decode()
    if name in ("progress", "details"):
        holder[name] = None
    else:
        holder[name] = preview(beginning[:_SHOWN], size, None, href)


def _size(value: Any) -> int:
    return len(to_json(value))
