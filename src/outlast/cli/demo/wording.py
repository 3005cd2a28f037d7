"""What the bookkeeper of the demo reads in its history, and what it says of a result."""

import json
from typing import Any, cast

FOUND = "paid-twice.csv"
"""The file in which a check says what it has found."""

_END = "<background_result"
_NOTICE_ENDS = "</runtime_notice>"
_RESULT = "\nResult: "


def is_end(told: str) -> bool:
    """Whether it is the end of a background task, and nothing that a person said."""
    return told.startswith(_END)


def last_words(told: str) -> str:
    """What was said, without a notice of the runtime before it: the name of a tool in one asks for nothing."""
    return told.rpartition(_NOTICE_ENDS)[2]


def about(result: Any) -> str:
    """What to say of a call: what came of it, or what it waits for."""
    found = cast(dict[str, Any], result) if isinstance(result, dict) else {}
    if found.get("awaiting") == "approval":
        return "I need your word for that: approve the payment, or refuse it. I pay nothing before."
    if found.get("awaiting") == "question":
        return "I have a question about that: please answer it, and I book it."
    if found.get("type") == "background":
        return "That takes a while and goes on in the background. I will tell you what comes of it."
    if "euros" in found:
        return f"Done: {found['euros']:,} EUR went to {found['supplier']}; it arrives on {found['arrives']}."
    if "paid_twice" in found:
        what = f"{found['invoices']} invoices, and one was paid twice: {found['paid_twice'][0]}"
        return f"The check is done: {what}. It is in {FOUND}."
    if "booked" in found:
        return f"Booked: {found['booked']} EUR, as {found['as']}."
    if "prices" in found:
        name, euros = min(found["prices"].items(), key=lambda each: each[1])
        return f"The cheapest for {found['goods']} is {name}, at {euros} EUR a box."
    if "session_id" in found and "result" in found:
        return f"My sub-session says: {found['result']}"
    if "letters" in found:
        return f"There is one new letter: {found['letters'][0]}."
    if "balance" in found:
        return f"There are {found['balance']:,} EUR left in the account."
    if "condition" in found:
        return f"I watch it, and tell you when {found['condition']}. I look next at {found['next']}."
    if "schedule_id" in found:
        return f"I will. Next time: {found['next']}."
    return f"This is what came of it: {result}"


def about_end(told: str) -> str:
    """What to say at the end of a background task."""
    result = told.partition(_RESULT)[2].partition("</background_result>")[0].partition("\n")[0]
    try:
        return about(json.loads(result))
    except ValueError:
        return "All right: that was not done." if "refused" in told else "That ended without a result."
