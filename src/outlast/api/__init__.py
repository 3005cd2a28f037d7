"""Outlast over HTTP: `create_app(outlast)` is an ASGI app that can be mounted in another one."""
