"""Traces of turns, model requests and tools, sent by OTLP to a collector on this machine."""

import asyncio

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent

from outlast import Outlast
from outlast.testing import ScriptedModel, call

agent = Agent(ScriptedModel([call("weather", city="Oslo"), "Take a hat: it is sunny in Oslo."]), name="travel")


@agent.tool_plain
async def weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: sunny, 21 degrees"


app = Outlast(agent, database="tracing.db")


def send_traces() -> TracerProvider:
    """To http://localhost:4318, or where OTEL_EXPORTER_OTLP_ENDPOINT says. Call it before the runtime starts."""
    provider = TracerProvider(resource=Resource.create({"service.name": "travel"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    Agent.instrument_all()  # spans of pydantic-ai's own: model requests, with tokens
    return provider


async def main() -> None:
    provider = send_traces()
    try:
        async with app as outlast:
            session = await outlast.sessions.create()
            print((await session.ask("What should I wear in Oslo?")).text)
    finally:
        provider.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
