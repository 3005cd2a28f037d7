"""The page of the HTTP API, from the OpenAPI document that the server publishes."""

from collections.abc import Mapping
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from outlast import Outlast
from outlast.api import create_app
from outlast.api.problems import STATUS

_INTRODUCTION = """# HTTP API

`outlast serve app.py` serves it, and `outlast.api.create_app(outlast)` gives it as an ASGI app to mount in another
one. The same is published as OpenAPI at `/openapi.json`, and can be read in a browser at `/docs`, a
page that loads nothing from elsewhere.

Send a key with every request: `Authorization: Bearer <key>`, or a JWT if the server knows its issuer. Bodies and
answers are JSON. Lists come in pages: `next` is the cursor of the next one, null on the last. A POST that makes
something takes an `Idempotency-Key`: sent again with the same key within 24 hours, it is done once, and something
else under the same key is refused.

**Streams.** A route that lists `text/event-stream` streams with `Accept: text/event-stream`: what is there is
replayed, then what comes is followed, also after the end of a turn. Each event has an `id:`; go on after it with
`Last-Event-ID` or `?after=`. A comment comes every ten seconds while nothing happens. Frames without an `id:` are
said to this reader only (`stream.opened`, `stream.live`, `stream.lagged`, `stream.expired`, `task.output`,
`session.deleted`).

**A parameter without a value is not given.** Pages build addresses from what they have: `?after=`, `?after=undefined`
and `?after=null` are read as if the parameter were left out. In `search`, `external_id`, `agent`, `kind` and `owner_id`
the words mean themselves, and only an empty value is left out.

**Not yours is not there.** Another owner's id and an unknown id get the same answer.

## Problems

Errors are [RFC 9457](https://www.rfc-editor.org/rfc/rfc9457) problems: `type`, `title`, `status`, `detail` (what to
do next) and a stable `code`. 429 and 503 say when to come back, in `Retry-After`.

| code | status |
|---|---|
"""


def api_page() -> str:
    document = create_app(Outlast(Agent(TestModel(), name="agent"), database="reference.db")).openapi()
    lines = [_INTRODUCTION + "\n".join(f"| `{code}` | {status} |" for code, status in STATUS.items())]
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tag = operation.get("tags", ["other"])[0]
            by_tag.setdefault(tag, []).append(_operation(method.upper(), path, operation, document))
    for tag, operations in by_tag.items():
        lines += ["", f"## {tag[0].upper()}{tag[1:]}", "", "\n\n".join(operations)]
    return "\n".join(lines) + "\n"


def _operation(method: str, path: str, operation: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    lines = [f"### `{method} {path}`", "", operation.get("description", "").strip()]
    parameters = [each for each in operation.get("parameters", []) if each["in"] != "path"]
    if parameters:
        lines += ["", "| parameter | in | meaning |", "|---|---|---|"]
        lines += [_parameter(each) for each in parameters]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        lines += ["", f"Body: {_shape(body, document)}"]
    lines += ["", f"Answers: {_answers(operation['responses'], document)}"]
    return "\n".join(lines)


def _parameter(parameter: Mapping[str, Any]) -> str:
    schema = parameter["schema"]
    default = f" Default: `{schema['default']}`." if schema.get("default") is not None else ""
    choice = f" One of {', '.join(f'`{each}`' for each in schema['enum'])}." if "enum" in schema else ""
    meaning = f"{parameter.get('description', '')}{choice}{default}".strip().replace("|", "\\|")
    return f"| `{parameter['name']}` | {parameter['in']} | {meaning} |"


def _answers(responses: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    said: list[str] = []
    for status, each in responses.items():
        if int(status) >= 300:
            continue
        kinds = each.get("content", {})
        shape = kinds.get("application/json", {}).get("schema")
        parts = [_shape(shape, document)] if shape else []
        parts += [f"`{kind}`" for kind in kinds if kind != "application/json"]
        said.append(f"{status}{': ' if parts else ''}{' or '.join(parts)}")
    problems = ", ".join(sorted(status for status in responses if int(status) >= 400))
    return "; ".join(said) + f". Problems: {problems}."


def _shape(schema: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """The fields of an object, those that may be left out with a question mark."""
    found = _resolved(schema, document)
    if "properties" not in found:
        return "any JSON object" if found.get("type") == "object" else f"`{found.get('type', 'JSON')}`"
    needed = set(found.get("required", ()))
    names = [f"`{name}`" if name in needed else f"`{name}`?" for name in found["properties"]]
    return ", ".join(names)


def _resolved(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    return schema if reference is None else document["components"]["schemas"][reference.rpartition("/")[2]]
