"""The socket of a server."""

import errno
import resource
import socket
from contextlib import suppress

import typer
from rich.console import Console


def raise_file_limit() -> None:
    """Each connection is an open file: as many as the system lets this process have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS names a limit that it does not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def address_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen(host: str, port: int, console: Console) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio does not switch off the delay of small packets.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as exc:
        listening.close()
        why = "is taken: give another one with --port" if exc.errno == errno.EADDRINUSE else f"cannot be used: {exc}"
        console.print(f"Port {port} on {host} {why}.", style="red")
        raise typer.Exit(1) from exc
    return listening
