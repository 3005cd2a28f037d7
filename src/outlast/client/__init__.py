"""A client of a server: the nouns of the library, over HTTP. Light to import: no runtime, no database, no agent."""

from outlast.client.client import Client

__all__ = ["Client"]
