"""Write every kind of message part as the installed pydantic-ai stores it: `python make_messages.py > FILE`.

Run it in an environment with the lowest supported pydantic-ai, and keep the files of earlier ones: each is what an
older process left behind.
"""

from datetime import UTC, datetime

from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PICTURE = BinaryContent(b"\x89PNG\r\n", media_type="image/png")

MESSAGES: list[ModelMessage] = [
    ModelRequest(
        parts=[
            SystemPromptPart("You are kind.", timestamp=AT),
            UserPromptPart(["What is this?", PICTURE, ImageUrl("https://pictures.example/a.png")], timestamp=AT),
        ],
        instructions="Be brief.",
        timestamp=AT,
    ),
    ModelResponse(
        parts=[
            ThinkingPart("A picture.", id="t1", signature="signed", provider_name="openai"),
            TextPart("I look closer.", id="x1"),
            ToolCallPart("look", {"at": "picture"}, "c1"),
            ToolCallPart("look", '{"at": "frame"}', "c2"),
            ToolCallPart("measure", {}, "c3"),
            ToolCallPart("charge", {"amount": 7}, "c4"),
            NativeToolCallPart("web_search", {"query": "frame"}, "n1", provider_name="openai"),
            NativeToolReturnPart("web_search", {"found": 1}, "n1", timestamp=AT, provider_name="openai"),
            FilePart(PICTURE),
        ],
        usage=RequestUsage(input_tokens=10, output_tokens=5, cache_read_tokens=3, cache_write_tokens=2),
        model_name="gpt-5",
        provider_name="openai",
        provider_response_id="r1",
        provider_details={"tier": "default"},
        finish_reason="tool_call",
        timestamp=AT,
    ),
    ModelRequest(
        parts=[
            ToolReturnPart("look", {"seen": ["a boat", PICTURE]}, "c1", timestamp=AT, metadata={"seconds": 1}),
            ToolReturnPart("look", "Say which frame.", "c2", timestamp=AT, outcome="retried"),
            ToolReturnPart("measure", "no ruler", "c3", timestamp=AT, outcome="failed"),
            ToolReturnPart("charge", "It may or may not have run.", "c4", timestamp=AT, outcome="interrupted"),
            UserPromptPart("In metres, please.", timestamp=AT),
        ],
        timestamp=AT,
    ),
    ModelResponse(parts=[TextPart("")], model_name="gpt-5", timestamp=AT, finish_reason="stop"),
    ModelRequest(
        parts=[RetryFeedbackPart("Say something.", retry=RetryInfo(cause="no_output", attempt=1), timestamp=AT)],
        timestamp=AT,
    ),
    ModelResponse(parts=[TextPart("A boat.")], model_name="gpt-5", timestamp=AT, finish_reason="stop"),
]

if __name__ == "__main__":
    print(ModelMessagesTypeAdapter.dump_json(MESSAGES, indent=1).decode())
