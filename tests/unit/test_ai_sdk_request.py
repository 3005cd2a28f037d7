"""The body that a client of the AI SDK sends, read strictly where it matters and leniently elsewhere."""

from typing import Any

import pytest

from outlast.errors import InvalidInput
from outlast.protocols.ai_sdk.asked import parse


def body(*parts: dict[str, Any], role: str = "user", **more: Any) -> dict[str, Any]:
    earlier = {"id": "m0", "role": "assistant", "parts": [{"type": "step-start"}]}
    return {"id": "chat", "messages": [earlier, {"id": "m1", "role": role, "parts": list(parts)}], **more}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def file(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "file", "url": url, "mediaType": "text/plain", **more}


def test_only_the_last_message_counts() -> None:
    """Its texts are joined, its id is the key, and what an application adds for itself is let through."""
    found = parse(
        body(text("One."), {"type": "data-mood", "data": 1}, text("Two."), theme="dark", trigger="submit-message")
    )
    assert (found.chat_id, found.message_id, found.text) == ("chat", "m1", "One.\n\nTwo.")
    assert (found.is_regenerate, found.when_busy, found.model) == (False, "steer", None)


def test_an_application_may_say_what_to_do_when_busy_and_which_model() -> None:
    found = parse(body(text("Go."), when_busy="queue", model="small"))
    assert (found.when_busy, found.model) == ("queue", "small")


def test_files_come_in_their_url() -> None:
    """Base64 and percent-encoded data URLs; the name and type of the part count."""
    first, second = parse(
        body(file("data:text/plain;base64,aGk=", filename="a.txt"), file("data:,a%20b"), text("Read."))
    ).files
    assert (first.name, first.data, first.media_type) == ("a.txt", b"hi", "text/plain")
    assert (second.name, second.data) == ("file", b"a b")


def test_an_answer_that_is_to_be_made_again_is_not_in_the_list() -> None:
    """What stood before it is the last message, and may be an answer too."""
    said = parse(body(text("Go."), trigger="regenerate-message", messageId="trn_1"))
    woken = parse(body(text("It goes on."), role="assistant", trigger="regenerate-message"))
    assert (said.is_regenerate, said.is_said, said.message_id) == (True, True, "m1")
    assert (woken.is_regenerate, woken.is_said) == (True, False)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "the body"),
        ({}, "id: Field required"),
        ({"id": "c", "messages": []}, "messages"),
        ({"id": "", "messages": [1]}, "id: String should have at least 1"),
        ({"id": "c", "messages": [{"id": "m", "role": "user"}]}, "parts: Field required"),
        ({**body(text("Go.")), "id": "a\x00b"}, "NUL"),
        (body(text("Go."), trigger="dance"), "trigger"),
        (body(text("Go."), when_busy="panic"), "when_busy"),
        (body(text("Go."), role="assistant"), "must be the user's"),
        (body(file("https://example.org/a.png")), "data: URL"),
        (body(file("data:text/plain;base64,a")), "base64"),
        (body(file("data:text/plain;base64,é")), "base64"),
        (body(file("data:text/plain")), "comma"),
    ],
)
def test_what_cannot_be_taken_is_named(given: object, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        parse(given)
