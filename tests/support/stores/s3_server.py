"""An S3-compatible server on loopback, as a process of its own. It checks signatures, and keeps buckets as folders."""

import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

RCLONE = Path(sys.executable).with_name("rclone")
BUCKET = "outlast-test"
KEY, SECRET = "outlast", "hidden"
_SAYS = "Starting s3 server on [http://"


@dataclass
class S3Server:
    """It may be ended and started again: it keeps its address and what it holds."""

    folder: Path
    address: str = "127.0.0.1:0"
    _process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def start(self) -> None:
        options = ("--addr", self.address, "--auth-key", f"{KEY},{SECRET}", "--config", "")
        command = (RCLONE, "serve", "s3", *options, "--cache-dir", self.folder / "cache", self.folder / "buckets")
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        self.address = _address(self._process.stderr)

    def stop(self) -> None:
        if self._process is not None and self._process.stderr is not None:
            self._process.kill()
            self._process.wait()
            self._process.stderr.close()
            self._process = None

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to use it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    def kept(self, prefix: str) -> list[Path]:
        """The files that lie in the bucket under a prefix."""
        return [each for each in (self.folder / "buckets" / BUCKET / prefix).rglob("*") if each.is_file()]


@contextmanager
def running_s3() -> Generator[S3Server]:
    with tempfile.TemporaryDirectory(prefix="outlast-s3-") as folder:
        (Path(folder) / "buckets" / BUCKET).mkdir(parents=True)
        server = S3Server(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


def _address(said: IO[str]) -> str:
    for line in said:
        if _SAYS in line:
            return line.partition(_SAYS)[2].partition("/]")[0]
    raise AssertionError("the S3 server did not start")
