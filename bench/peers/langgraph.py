"""The development server of LangGraph. It keeps its threads in memory, so it promises less than the others."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.contender import GRAPHS, Call, Contender, graph_turn
from bench.peers.environment import binaries
from bench.peers.server import free_port, running

PACKAGES = ("langgraph-cli[inmem]==0.4.40",)
GRAPH = Path(__file__).with_name("graph.txt")


@contextmanager
def langgraph(folder: Path, at_once: int) -> Generator[Contender]:
    command = binaries("langgraph", PACKAGES) / "langgraph"
    shutil.copy(GRAPH, folder / "graph.py")
    (folder / "langgraph.json").write_text(GRAPHS)
    port = free_port()
    arguments = ("dev", "--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port))
    environment = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "LOG_LEVEL": "ERROR"}
    started = running(
        "langgraph",
        [command, *arguments, "--n-jobs-per-worker", str(at_once)],
        folder,
        port,
        health="/ok",
        environment=environment,
    )
    with started as pid:
        url = f"http://127.0.0.1:{port}"
        # Its last checkpoint is in memory when the stream ends; "e now" are the last five characters of the answer.
        yield Contender(
            "langgraph", "in memory", url, lambda: [pid], Call("/threads", {}), "thread_id", graph_turn, '"e now"'
        )
