"""The URL of a database: what is taken, and what is said of the rest."""

import pytest

from outlast.errors import InvalidInput
from outlast.store import urls


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_what_hosters_hand_out_is_a_postgresql_url(scheme: str) -> None:
    assert urls.parse(f"{scheme}://ada@db/outlast").drivername == "postgresql+asyncpg"


@pytest.mark.parametrize("url", ["mysql://ada@db/outlast", "postgres://ada@db", "sqlite://"])
def test_what_cannot_be_used_says_what_can(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"postgresql://|sqlite:///outlast\.db"):
        urls.parse(url)
