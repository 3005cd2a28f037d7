"""Whoever asks is told who that is, and what the server is."""

import asyncio
from datetime import timedelta

from typer.testing import CliRunner

import outlast
from outlast import Client
from outlast.cli.main import app
from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime


async def test_a_caller_is_told_who_it_is_and_what_the_server_is(runtime: Runtime) -> None:
    """K1, K2: after a reload a page knows owner, role, scope, version, limits, and whether money is shown."""
    async with serving(runtime(["Hello."], max_text=1_234)) as server:
        ada = (await (await server.client(scope="read")).get("/v1/me")).json()
        assert {ada[name] for name in ("owner_id", "name", "scope")} == {"ada", "test", "read"}
        assert (ada["role"], ada["is_money_shown"], ada["expires_at"]) == ("user", False, None)
        assert (ada["version"], ada["engine"], ada["limits"]["max_text"]) == (outlast.__version__, "embedded", 1_234)
        assert ada["features"] == {"connections": False, "public_completions": False}
        root = (await (await server.client("root", role="admin")).get("/v1/me")).json()
        assert (root["role"], root["is_money_shown"]) == ("admin", True)


async def test_a_program_and_the_command_ask_the_same(runtime: Runtime) -> None:
    """K1: `Client.me()` and `outlast me`."""
    async with serving(runtime(["Hello."])) as server:
        key, token = await server.outlast.keys.make("ada", "laptop", expires_in=timedelta(days=1))
        async with Client(server.url, token) as client:
            me = await client.me()
        assert (me.owner_id, me.name, me.expires_at) == ("ada", "laptop", key.expires_at)
        asked = ["me", "--url", server.url, "--token", token]
        said = (await asyncio.to_thread(CliRunner().invoke, app, asked)).output
        assert ("laptop" in said, f"outlast {outlast.__version__}, embedded" in said) == (True, True)
