"""The page that describes the HTTP API, from the OpenAPI document: it loads nothing and runs no script."""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]
_CODE = re.compile(r"`([^`]+)`")
_LIMITS = {
    "minimum": "≥ {}",
    "maximum": "≤ {}",
    "exclusiveMinimum": "> {}",
    "exclusiveMaximum": "< {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} items",
}
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 3rem; }
section { border-top: 1px solid #8886; padding-block: .5rem; }
h3 { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
h3 b { display: inline-block; min-width: 4.5rem; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
pre { overflow-x: auto; border-inline-start: 3px solid #8886; padding-inline-start: 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: start; vertical-align: top; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8883; }
nav ul { columns: 18rem; padding-inline-start: 1rem; }
:target { outline: 2px solid; outline-offset: .3rem; }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def reference_page(document: Schema) -> str:
    """A whole page: every route by its tag, with parameters, bodies and answers, and every schema they name."""
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    by_tag: dict[str, list[tuple[str, str, Schema]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation.get("tags", ["other"])[0], []).append((method.upper(), path, operation))
    schemas: Mapping[str, Schema] = document["components"]["schemas"]
    parts = [
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}: HTTP API</title>"
        f"<meta name='viewport' content='width=device-width, initial-scale=1'><style>{_STYLE}</style>"
        f"<h1>{title}: HTTP API</h1><p>{_prose(document['info'].get('summary', ''))} "
        "The same for programs: <a href='openapi.json'>openapi.json</a>.</p>"
        "<p>Send a key with every request: <code>Authorization: Bearer KEY</code>.</p>",
        _contents(by_tag, schemas),
    ]
    for tag, operations in by_tag.items():
        parts += [f"<h2>{escape(tag)}</h2>", *(_operation(*each) for each in operations)]
    parts += ["<h2>Schemas</h2>", *(_schema(name, each) for name, each in schemas.items())]
    return "\n".join([*parts, "</html>\n"])


def _contents(by_tag: Mapping[str, Sequence[tuple[str, str, Schema]]], schemas: Iterable[str]) -> str:
    lines = ["<nav aria-label='Contents'>"]
    for tag, operations in by_tag.items():
        links = (_link(operation["operationId"], f"{method} {path}") for method, path, operation in operations)
        lines.append(f"<p>{escape(tag)}</p><ul>{''.join(f'<li>{each}</li>' for each in links)}</ul>")
    names = "".join(f"<li>{_link(_anchor(name), name)}</li>" for name in schemas)
    return "".join([*lines, f"<p>Schemas</p><ul>{names}</ul></nav>"])


def _operation(method: str, path: str, operation: Schema) -> str:
    parts = [
        f"<section id='{escape(operation['operationId'])}'><h3><b>{method}</b> {escape(path)}</h3>",
        f"<p>{_prose(operation.get('description', ''))}</p>",
    ]
    parameters: Sequence[Schema] = operation.get("parameters", ())
    if parameters:
        rows = [(each["name"], each["in"], each["schema"], each.get("required", False), each) for each in parameters]
        parts.append(_table(("parameter", "in", "type", "meaning"), (_parameter(*each) for each in rows)))
    body = operation.get("requestBody", {}).get("content", {})
    if body:
        parts.append(f"<p>Body: {_contents_of(body)}</p>")
    answers = operation["responses"].items()
    given = [(status, each) for status, each in answers if status < "300"]
    parts.append(_table(("status", "meaning", "answer"), (_answer(*each) for each in given)))
    problems = ", ".join(
        f"{status} ({_prose(each.get('description', ''))})" for status, each in answers if status >= "300"
    )
    return "".join([*parts, f"<p>Problems: {problems}.</p>" if problems else "", "</section>"])


def _parameter(name: str, where: str, schema: Schema, is_required: bool, whole: Schema) -> Sequence[str]:
    return _code(name), escape(where), _type(schema), _meaning({**schema, **whole}, schema, is_required=is_required)


def _answer(status: str, answer: Schema) -> Sequence[str]:
    return escape(status), _prose(answer.get("description", "")), _contents_of(answer.get("content", {}))


def _schema(name: str, schema: Schema) -> str:
    parts = [f"<section id='{_anchor(name)}'><h3>{escape(name)}</h3><p>{_prose(schema.get('description', ''))}</p>"]
    fields: Mapping[str, Schema] = schema.get("properties", {})
    if fields:
        required = frozenset(schema.get("required", ()))
        rows = (
            (_code(field), _type(each), _meaning(each, each, is_required=field in required))
            for field, each in fields.items()
        )
        parts.append(_table(("field", "type", "meaning"), rows))
    else:
        parts.append(f"<p>{_type(schema)}</p>")
    for example in schema.get("examples", ()):
        parts.append(f"<pre>{escape(json.dumps(example, indent=2, ensure_ascii=False))}</pre>")
    return "".join([*parts, "</section>"])


def _meaning(described: Schema, schema: Schema, *, is_required: bool) -> str:
    said = [] if is_required else ["May be left out."]
    if described.get("description"):
        said.insert(0, _prose(described["description"]))
    if schema.get("default") is not None:
        said.append(f"Default: {_code(json.dumps(schema['default']))}.")
    limits = _limits(schema)
    return " ".join([*said, *([f"({', '.join(limits)})"] if limits else [])])


def _limits(schema: Schema) -> list[str]:
    own = [escape(words.format(f"{schema[name]:,}")) for name, words in _LIMITS.items() if name in schema]
    return [*own, *(each for inner in schema.get("anyOf", ()) for each in _limits(inner))]


def _type(schema: Schema) -> str:
    match schema:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            return _link(_anchor(name), name)
        case {"anyOf": alternatives}:
            return " or ".join(map(_type, alternatives))
        case {"enum": values}:
            return " or ".join(_code(json.dumps(each)) for each in values)
        case {"const": value}:
            return _code(json.dumps(value))
        case {"type": "array", "items": items}:
            return f"list of {_type(items)}"
        case {"type": "object", "additionalProperties": {"$ref": _} | {"type": _} as inner}:
            return f"object of {_type(inner)}"
        case {"type": str(kind)}:
            return escape(f"{kind} ({schema['format']})" if "format" in schema else kind)
        case _:
            return "any JSON"


def _contents_of(content: Schema) -> str:
    return " or ".join(
        f"{_type(each['schema'])} as {_code(kind)}" if each.get("schema") else _code(kind)
        for kind, each in content.items()
    )


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th scope='col'>{each}</th>" for each in columns)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _anchor(name: str) -> str:
    return escape(f"schema-{name}")


def _link(anchor: str, text: str) -> str:
    return f"<a href='#{escape(anchor)}'>{_code(text)}</a>"


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _prose(text: str) -> str:
    """Plain text, with what stands between backticks as code."""
    return _CODE.sub(r"<code>\1</code>", escape(text)).replace("\n\n", "<br>")
