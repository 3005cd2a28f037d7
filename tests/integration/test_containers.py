"""The image and the compose file, without an engine for containers: their commands are run as they stand there."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from tests.support.network.server import JsonObject
from tests.support.processes.serving_process import Program, run

ROOT = Path(__file__).parents[2]
INSTRUCTION = re.compile(r"^([A-Z]+) (.*)$", re.MULTILINE)
ANSWER = 'f"You said: {last_user_text(request)}"'


def instructions(name: str) -> list[str]:
    return [text for word, text in INSTRUCTION.findall((ROOT / "Dockerfile").read_text()) if word == name]


@pytest.fixture
def services() -> dict[str, JsonObject]:
    found: Any = yaml.safe_load((ROOT / "deploy" / "compose.yml").read_text())
    return found["services"]


def arguments(words: Sequence[str]) -> list[str]:
    """Of a container's command, on a free port of this machine."""
    assert words[0] == "outlast"
    return [{"0.0.0.0": "127.0.0.1", "8000": "0"}.get(each, each) for each in words[1:]]


def test_what_the_compose_file_tells_to_set_is_what_it_reads(services: dict[str, JsonObject]) -> None:
    """What stands under `environment` wins over a file of variables: setting that would do nothing."""
    text = (ROOT / "deploy" / "compose.yml").read_text()
    told = "\n".join(line for line in text.splitlines() if line.lstrip().startswith("#"))
    read = set(re.findall(r"\$\{(\w+)", text))
    assert set(re.findall(r"\b([A-Z][A-Z_]+)=", told)) == read - {"IMAGE"}
    api: Any = services["api"]
    assert [name for name in api["environment"] if name in told] == []
    assert api["environment"]["OUTLAST_FILES"] == "${FILES_URL:-/data/files}"


def test_the_image_has_what_it_copies_and_a_python_that_fits() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [default] = [each.partition("=")[2].strip('"') for each in instructions("ARG") if each.startswith("APP=")]
    copied = [each.split() for each in instructions("COPY") if not each.startswith("--from")]
    sources = [name.replace("${APP}", default) for words in copied for name in words[:-1]]
    assert [each for each in sources if not (ROOT / each).exists()] == []
    kept = [each[1:] for each in (ROOT / ".dockerignore").read_text().split() if each.startswith("!")]
    assert sorted(kept) == sorted(sources), "what is copied is what the engine is given"
    bases = [each.split()[0] for each in instructions("FROM")]
    versions = {each.removeprefix("python:").removesuffix("-slim") for each in bases if not each.startswith("node:")}
    assert all(SpecifierSet(project["requires-python"]).contains(each) for each in versions)
    [extras] = [each.partition("=")[2].strip('"') for each in instructions("ARG") if each.startswith("EXTRAS=")]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])


def test_the_wheel_of_the_image_is_built_from_what_is_copied(tmp_path: Path) -> None:
    """Nothing else of the project is there while it is built."""
    source = tmp_path / "source"
    source.mkdir()
    first = [each.split() for each in instructions("COPY") if not each.startswith(("--from", "web "))][:2]
    for name in (each for words in first for each in words[:-1]):
        here = ROOT / name
        (shutil.copytree if here.is_dir() else shutil.copy)(here, source / name)
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    assert len(list(tmp_path.glob("*.whl"))) == 1


def test_one_container_serves_from_its_volume(tmp_path: Path) -> None:
    """The image's own command, with the app that it has."""
    shutil.copy(ROOT / "deploy" / "app.py", tmp_path / "app.py")
    command: list[str] = json.loads(instructions("CMD")[-1])
    with Program(tmp_path, *arguments(command), DATABASE_URL=f"sqlite:///{tmp_path / 'outlast.db'}") as server:
        server.expect("Outlast serves")
        assert "You said: hello" in run(tmp_path, "send", "hello", "--wait")
        server.interrupt()
        assert server.ended() == 0


def test_the_composed_processes_work_together_without_an_object_store(
    services: dict[str, JsonObject], ready_postgres_url: str, tmp_path: Path
) -> None:
    """I5: one only accepts, the other runs; a large answer goes from one to the other over the shared volume."""
    api, worker = services["api"], services["worker"]
    shared = {each.partition(":")[0] for service in (api, worker) for each in service["volumes"]}
    assert shared == {"files"}
    assert api["environment"] == worker["environment"]
    where = re.fullmatch(r"\$\{FILES_URL:-(/data/.*)\}", api["environment"]["OUTLAST_FILES"])
    assert where is not None, "in the volume unless told otherwise"
    environment = {
        **api["environment"],
        "DATABASE_URL": ready_postgres_url,
        "OUTLAST_FILES": str(tmp_path / "files"),
    }
    app = (ROOT / "deploy" / "app.py").read_text()
    for name in ("api", "worker"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "app.py").write_text(app.replace(ANSWER, f"{ANSWER} * 10_000"))
    with (
        Program(tmp_path / "api", *arguments(shlex.split(api["command"])), **environment) as serving,
        Program(tmp_path / "worker", *arguments(shlex.split(worker["command"])), **environment) as working,
    ):
        serving.expect("Outlast serves")
        working.expect("is ready")
        said = run(tmp_path / "api", "send", "hello", "--wait")
    assert said.count("You said: hello") == 10_000
    assert list((tmp_path / "files").glob("ses_*/*")) != []
