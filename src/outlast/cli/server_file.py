"""The file that `serve` leaves beside its database: where the server is and a key for it, for this user only."""

import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

ENDING = ".server.json"


class ServerPlace(BaseModel):
    url: str
    token: str
    pid: int


@dataclass(frozen=True, slots=True)
class ServerFile:
    path: Path

    @classmethod
    def beside(cls, database: Path) -> "ServerFile":
        return cls(database.with_name(database.name + ENDING))

    def read(self) -> ServerPlace | None:
        """What it says; None when it is not there or says something else."""
        try:
            return ServerPlace.model_validate_json(self.path.read_bytes())
        except (OSError, ValidationError):
            return None

    def write(self, url: str, token: str) -> None:
        """Readable by this user only, whole or not at all."""
        place = ServerPlace(url=url, token=token, pid=os.getpid())
        new = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(place.model_dump_json())
        new.replace(self.path)
