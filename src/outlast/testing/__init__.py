"""Test an agent without a network: a model that says what a script tells it to say.

```python
from outlast.testing import ScriptedModel, call, text

model = ScriptedModel([
    call("search", query="oslo"),
    [text("Found it: ", chunk=4), text("Oslo")],
])
```

A script survives the death of its process when the step is derived from the history: give a function of
the messages, or a list with `by="history"`.
"""

from outlast.clock import ManualClock
from outlast.testing.clock import next_fire
from outlast.testing.history import last_user_text, texts_seen, tool_returns
from outlast.testing.model import ScriptedModel
from outlast.testing.people import answer, approve, complete, connect, refuse, waiting
from outlast.testing.request import Request
from outlast.testing.script import ScriptExhausted, Steps
from outlast.testing.step import Reply, Step, call, calls, delay, error, gate, reasoning, reply, text

__all__ = [
    "ManualClock",
    "Reply",
    "Request",
    "ScriptExhausted",
    "ScriptedModel",
    "Step",
    "Steps",
    "answer",
    "approve",
    "call",
    "calls",
    "complete",
    "connect",
    "delay",
    "error",
    "gate",
    "last_user_text",
    "next_fire",
    "reasoning",
    "refuse",
    "reply",
    "text",
    "texts_seen",
    "tool_returns",
    "waiting",
]
