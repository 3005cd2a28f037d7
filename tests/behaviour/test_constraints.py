"""Permissions, dry run and binding of a session: kept, changed and copied; one session for a resource (A7, A8, D11)."""

import asyncio
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from outlast import Binding, Permissions, Session
from outlast.errors import Conflict, IdempotencyMismatch, InvalidInput, NotFound
from outlast.store.repositories import sessions as rows
from outlast.store.tables import sessions
from outlast.store.unit import Unit
from outlast.transitions.sessions import constraints
from tests.support.turns.runtime import Runtime, events_of
from tests.support.turns.tree import link

LISTS = Permissions(allow=["shell(command~='^git ')", "read_*"], deny=["read_secret"])
FAULTS: list[Any] = [{"deny": ["a b"]}, {"deny": 5}, [1], {"allow": "x"}, {"x": 1}]
INVOICE = Binding(kind="invoice", id="4711", defaults={"invoice_id": "4711"})


async def test_they_are_kept_changed_and_told(runtime: Runtime) -> None:
    """A7, A8: over a restart; each change is an event, and one that changes nothing is none."""
    async with runtime() as outlast:
        session = await outlast.sessions.create(permissions=LISTS, is_dry_run=True)
        plain = await outlast.sessions.create()
        assert (plain.permissions.allow, plain.permissions.deny, plain.is_dry_run, plain.binding) == (
            None,
            [],
            False,
            None,
        )
    async with runtime() as outlast:
        session = await outlast.sessions.get(session.id)
        assert (session.permissions.allow, session.permissions.deny) == (LISTS.allow, LISTS.deny)
        assert session.is_dry_run
        await session.update(permissions=Permissions(deny=["shell"]), is_dry_run=False)
        await session.update(permissions=Permissions(deny=["shell"]), is_dry_run=False)
        await session.update(title="Invoices")
        assert (session.permissions.allow, session.permissions.deny, session.is_dry_run) == (None, ["shell"], False)
        await session.update(permissions=None)
        assert (session.permissions.allow, session.permissions.deny) == (None, [])
        told = [event.data for event in await events_of(session, "session.changed")]
        assert told == [
            {"permissions": {"allow": None, "deny": ["shell"], "always": []}, "is_dry_run": False},
            {"title": "Invoices"},
            {"permissions": {"allow": None, "deny": [], "always": []}},
        ]


async def test_a_fault_is_named_and_nothing_is_stored(runtime: Runtime) -> None:
    async with runtime() as outlast:
        with pytest.raises(InvalidInput, match="the name of an argument is expected"):
            await outlast.sessions.create(permissions=Permissions(deny=["shell()"]))
        for wrong in (
            Binding(kind=" ", id="1"),
            Binding(kind="a", id=""),
            Binding(kind="a", id="b" * 201),
            Binding(kind="a", id="b\x00"),
            Binding(kind="a", id="b", defaults={"x": "y" * 20_000}),
        ):
            with pytest.raises(InvalidInput):
                await outlast.sessions.create(binding=wrong)
        with pytest.raises(InvalidInput, match="external_id or a binding"):
            await outlast.sessions.create(binding=INVOICE, external_id="x")
        session = await outlast.sessions.create(title="before")
        with pytest.raises(InvalidInput):
            await session.update(title="after", permissions=Permissions(allow=["a b"]))
        assert (await session.refresh()).title == "before"
        assert len(await outlast.sessions.list()) == 1


async def test_a_resource_has_one_session_of_an_owner(runtime: Runtime) -> None:
    """D11: found again, also by many at once; another owner's, another kind's and a deleted one's is another."""
    async with runtime() as outlast:
        made = await asyncio.gather(*(outlast.sessions.create(binding=INVOICE) for _ in range(8)))
        assert len({each.id for each in made}) == 1
        first = made[0]
        assert first.binding == INVOICE
        later = await outlast.sessions.create(binding=Binding(kind="invoice", id="4711"), title="ignored")
        assert (later.id, later.title, later.binding) == (first.id, None, INVOICE)
        others = [
            await outlast.owned_by("ben").create(binding=INVOICE),
            await outlast.sessions.create(binding=Binding(kind="order", id="4711")),
            await outlast.sessions.create(binding=Binding(kind="invoice", id="4712")),
        ]
        assert len({first.id, *(each.id for each in others)}) == 4
        await outlast.sessions.delete(first.id)
        assert (await outlast.sessions.create(binding=INVOICE)).id != first.id


async def test_an_idempotency_key_names_one_of_them(runtime: Runtime) -> None:
    async with runtime() as outlast:
        first = await outlast.sessions.create(binding=INVOICE, idempotency_key="k")
        assert (await outlast.sessions.create(binding=INVOICE, idempotency_key="k")).id == first.id
        with pytest.raises(IdempotencyMismatch):
            await outlast.sessions.create(binding=INVOICE, is_dry_run=True, idempotency_key="k")
        await outlast.sessions.delete(first.id)
        with pytest.raises(Conflict):
            await outlast.sessions.create(binding=INVOICE, idempotency_key="k")


async def test_a_copy_is_constrained_like_the_first(runtime: Runtime) -> None:
    """A7, A8, D11: fork, export and import; the binding goes on finding the first; what was for always stays there."""
    async with runtime() as outlast:
        first = await outlast.sessions.create(permissions=LISTS, is_dry_run=True, binding=INVOICE)

        def add(unit: Unit) -> str:
            return constraints.add_always(unit, first.id, "read_file", by="ada", owner_id=first.owner_id)

        await outlast.database.transaction(add, name="add")
        document = await first.export()
        for copy in (await outlast.sessions.fork(first.id), await outlast.sessions.import_(document)):
            assert copy.id != first.id
            assert (copy.permissions.allow, copy.permissions.deny) == (LISTS.allow, LISTS.deny)
            assert (copy.permissions.always, copy.is_dry_run, copy.binding) == ([], True, INVOICE)
        assert (await outlast.sessions.create(binding=INVOICE)).id == first.id
        for wrong in FAULTS:
            bad = {**document, "session": {**document["session"], "permissions": wrong}}
            with pytest.raises(InvalidInput):
                await outlast.sessions.import_(bad)


async def test_a_rule_for_always_is_listed_and_withdrawn(runtime: Runtime) -> None:
    """A7: new lists leave it as it is."""
    async with runtime() as outlast:
        session = await outlast.sessions.create()

        rule = "shell(command~='^git ')"
        add = partial(constraints.add_always, session_id=session.id, rule=rule, by="ada", owner_id=session.owner_id)
        made = await outlast.database.transaction(add, name="rule")
        await session.update(permissions=LISTS)
        [kept] = session.permissions.always
        assert (kept.id, kept.rule, kept.by) == (made, rule, "ada")
        row = await outlast.database.read(lambda connection: rows.get(connection, session.id, session.owner_id))
        assert row is not None
        assert constraints.is_always_approved(row.permissions, "shell", {"command": "git push"})
        assert not constraints.is_always_approved(row.permissions, "shell", {"command": "rm"})
        withdraw = partial(constraints.withdraw_always, session_id=session.id)
        for owner_id, rule_id in (("ben", made), (session.owner_id, "rul_unknown")):
            with pytest.raises(NotFound):
                await outlast.database.transaction(partial(withdraw, rule_id=rule_id, owner_id=owner_id), name="rule")
        work = partial(withdraw, rule_id=made, owner_id=session.owner_id)
        await outlast.database.transaction(work, name="rule")
        assert (await session.refresh()).permissions.always == []
        assert session.permissions.allow == LISTS.allow


async def test_what_holds_is_that_of_all_ancestors(runtime: Runtime) -> None:
    """A7, A8, D11: and where a row cannot be read nothing is allowed."""
    async with runtime() as outlast:
        top = await outlast.sessions.create(permissions=Permissions(deny=["shell"]), is_dry_run=True, binding=INVOICE)
        middle = await outlast.sessions.create()
        bottom = await outlast.sessions.create(permissions=Permissions(allow=["shell", "read"]))

        def change(unit: Unit, child: Session, **values: str) -> None:
            unit.connection.execute(sa.update(sessions).where(sessions.c.id == child.id).values(values))

        for child, parent in ((middle, top), (bottom, middle)):
            work = partial(change, child=child, parent_id=parent.id)
            await outlast.database.transaction(work, name="link")
        chain = await outlast.database.read(lambda connection: constraints.chain_of(connection, bottom.id))
        assert (chain.is_dry_run, chain.binding) == (True, INVOICE.model_dump())
        assert [tool for tool in ("shell", "read", "write") if chain.refusal(tool, {}) is None] == ["read"]
        assert [tool for tool in ("shell", "read", "write") if chain.offers(tool)] == ["read"]
        for damaged in ("[]", "{}", '{"allow": ["a b"], "deny": []}', "no json"):
            work = partial(change, child=middle, permissions=damaged)
            await outlast.database.transaction(work, name="damage")
            chain = await outlast.database.read(lambda connection: constraints.chain_of(connection, bottom.id))
            assert chain.refusal("read", {}) is not None
            assert (await middle.refresh()).permissions is not None


async def test_a_copy_of_a_sub_session_is_held_by_what_held_there(runtime: Runtime) -> None:
    """A7, A8, D11, D10: of all sessions above it, also in a copy of a copy; what is changed there later is not."""
    async with runtime() as outlast:
        top = await outlast.sessions.create(permissions=Permissions(deny=["shell"]), is_dry_run=True, binding=INVOICE)
        middle = await outlast.sessions.create(permissions=Permissions(allow=["read_*", "shell"]))
        below = await outlast.sessions.create(permissions=Permissions(deny=["read_secret"]))
        await link(outlast, middle, top)
        await link(outlast, below, middle)
        copies = [await outlast.sessions.fork(below.id), await outlast.sessions.import_(await below.export())]
        copies += [await outlast.sessions.fork(each.id) for each in copies]
        await top.update(permissions=None, is_dry_run=False)
        for each in copies:
            own = each.permissions
            assert (each.parent_id, own.allow, own.deny) == (None, None, ["read_secret"])
            assert [(lists.allow, lists.deny) for lists in own.within] == [(["read_*", "shell"], []), (None, ["shell"])]
            assert (each.is_dry_run, each.binding) == (True, INVOICE)
            await each.update(permissions=Permissions())
            assert len(each.permissions.within) == 2
            held = await outlast.database.read(partial(constraints.chain_of, session_id=each.id))
            may = [name for name in ("shell", "pay", "read_it") if held.refusal(name, {}) is None]
            assert may == ["read_it"]
            await each.update(permissions=Permissions(within=[]))
            assert each.permissions.within == []


async def test_a_copy_of_one_whose_rules_cannot_be_read_may_do_nothing(runtime: Runtime) -> None:
    """A7, D10: as it may itself."""
    async with runtime() as outlast:
        session = await outlast.sessions.create(permissions=LISTS)

        def damage(unit: Unit) -> None:
            unit.connection.execute(sa.update(sessions).where(sessions.c.id == session.id).values(permissions="[5"))

        await outlast.database.transaction(damage, name="damage")
        copy = await outlast.sessions.fork(session.id)
        assert copy.permissions.allow == []
