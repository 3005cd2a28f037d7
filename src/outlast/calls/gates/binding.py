"""Bound sessions: arguments that name the session's resource default to it, and no other value is taken."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from pydantic_ai import ToolDefinition
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.models import ModelRequestContext
from pydantic_core import from_json

OTHER = (
    "The tool {tool!r} was not run: this session is about {kind} {id}, and {name!r} can only be {value!r} here. Leave "
    "it out, or tell the user that another resource needs another session."
)


def bound_args(tool: ToolDefinition, args: Any, binding: Mapping[str, Any]) -> Any:
    """The arguments as they are validated: with what the binding says of them. Raises if they name something else."""
    defaults = _defaults(tool, binding)
    given = _read(args) if defaults else None
    if given is None:
        return args
    for name, value in defaults.items():
        if given.get(name) is not None and not _is_same(given[name], value):
            about = {"kind": binding["kind"], "id": binding["id"], "name": name, "value": value}
            raise ToolFailed(OTHER.format(tool=tool.name, **about))
    return {**given, **defaults}


def shown_bound(request: ModelRequestContext, binding: Mapping[str, Any]) -> ModelRequestContext:
    """The tools as the model sees them: it need not give what the binding says."""
    given = request.model_request_parameters
    tools = [_shown(each, _defaults(each, binding)) for each in given.function_tools]
    return replace(request, model_request_parameters=replace(given, function_tools=tools))


def _shown(tool: ToolDefinition, defaults: Mapping[str, Any]) -> ToolDefinition:
    if not defaults:
        return tool
    schema = tool.parameters_json_schema
    properties = {name: _with_default(name, each, defaults) for name, each in schema["properties"].items()}
    required = [each for each in schema.get("required", ()) if each not in defaults]
    return replace(tool, parameters_json_schema={**schema, "properties": properties, "required": required})


def _with_default(name: str, schema: Any, defaults: Mapping[str, Any]) -> Any:
    if name not in defaults or not isinstance(schema, dict):
        return schema
    return {**cast(dict[str, Any], schema), "default": defaults[name]}


def _defaults(tool: ToolDefinition, binding: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of the arguments that this tool has."""
    shown: Any = tool.parameters_json_schema.get("properties", {})
    return {name: value for name, value in binding.get("defaults", {}).items() if name in shown}


def _read(args: Any) -> dict[str, Any] | None:
    """None: they are no object, and validation says so."""
    try:
        found: Any = from_json(args) if isinstance(args, str) and args.strip() else (args or {})
    except ValueError:
        return None
    return cast(dict[str, Any], found) if isinstance(found, dict) else None


def _is_same(given: Any, value: Any) -> bool:
    """Models write numbers as text, and the other way round."""
    is_plain = all(isinstance(each, str | int) and not isinstance(each, bool) for each in (given, value))
    return given == value or (is_plain and str(given) == str(value))
