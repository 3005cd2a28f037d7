"""Outlast over HTTP: `create_app(outlast)` is an ASGI app that can be mounted in another one."""

from outlast.api.app import create_app
from outlast.api.auth import Principal

__all__ = ["Principal", "create_app"]
