"""What the workflows and the hooks run is what `make check` runs, from the same environment."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from outlast import __version__

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
MADE = re.compile(r"(?:^|`|run: )make ([a-z-]+)", re.MULTILINE)
PROGRAM = re.compile(r"\.venv/bin/([\w-]+)")


def read(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def workflow(name: str) -> dict[Any, Any]:
    return read(ROOT / ".github" / "workflows" / f"{name}.yml")


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in read(path)["jobs"].values() for step in job["steps"]]


def commands(path: Path) -> list[str]:
    return [step["run"] for step in steps(path) if "run" in step]


def hooks() -> list[dict[str, Any]]:
    (local,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local", "nothing is fetched for a commit"
    return local["hooks"]


def dry_run(target: str) -> list[list[str]]:
    """The words of each command that make would run."""
    command = ["make", "--dry-run", "--silent", "--old-file=.venv/.ready", target, f"PYTHON={sys.executable}"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    return [shlex.split(line, comments=True) for line in made.stdout.splitlines() if ".venv/bin/" in line]


def begins_with(command: Sequence[str], beginning: Sequence[str]) -> bool:
    return list(command[: len(beginning)]) == list(beginning)


def test_the_workflows_are_those_that_are_meant() -> None:
    assert [each.stem for each in WORKFLOWS] == ["check", "release"]


@pytest.mark.parametrize(
    "path", [*WORKFLOWS, ROOT / ".ci" / "run", ROOT / "README.md", ROOT / "AGENTS.md"], ids=lambda path: path.name
)
def test_every_target_that_is_called_is_in_the_makefile(path: Path) -> None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    called = set(MADE.findall(path.read_text(encoding="utf-8")))
    assert called
    assert called <= targets


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / ".pre-commit-config.yaml"], ids=lambda path: path.name)
def test_every_program_of_the_environment_is_installed_in_it(path: Path) -> None:
    here = Path(sys.executable).parent
    named = set(PROGRAM.findall(path.read_text(encoding="utf-8")))
    assert [each for each in sorted(named) if not (here / each).exists()] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_checks_what_the_own_machine_checks(path: Path) -> None:
    """`make check` and nothing less; only which Python makes the environment is said."""
    assert "make check\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert commands(path)[0] == "make check PYTHON=python"


def test_every_supported_python_is_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = workflow("check")["jobs"]["check"]["strategy"]["matrix"]["python"]
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    assert project["requires-python"] == f">={versions[0]}"
    said = {each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each}
    assert said <= set(versions)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_node_is_the_one_that_contributors_are_told_of(path: Path) -> None:
    (node,) = [step for step in steps(path) if step.get("uses", "").startswith("actions/setup-node@")]
    assert f"Node {node['with']['node-version']} or newer" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_only_the_job_that_publishes_may_ask_for_an_identity() -> None:
    """By trusted publishing: no workflow has a secret, and what is published is what was built and checked."""
    for path in WORKFLOWS:
        assert read(path)["permissions"] == {"contents": "read"}
        assert "secrets." not in path.read_text(encoding="utf-8")
    jobs = workflow("release")["jobs"]
    assert {name for name, job in jobs.items() if "id-token" in job.get("permissions", {})} == {"publish"}
    assert jobs["publish"]["needs"] == "build"
    assert not any("run" in step for step in jobs["publish"]["steps"])


def test_a_release_is_made_by_a_tag_alone() -> None:
    assert workflow("release")[True] == {"push": {"tags": ["v*"]}}  # YAML reads the key `on` as true


@pytest.mark.parametrize(("tag", "is_right"), [(f"v{__version__}", True), ("v999.0.0", False), (__version__, False)])
def test_a_tag_that_names_another_version_is_refused(tag: str, is_right: bool) -> None:
    (check,) = [each for each in commands(WORKFLOWS[1]) if "GITHUB_REF_NAME" in each]
    check = check.replace(".venv/bin/", f"{Path(sys.executable).parent}/")
    done = subprocess.run(
        ["bash", "-c", check], cwd=ROOT, env={**os.environ, "GITHUB_REF_NAME": tag}, capture_output=True, timeout=150
    )
    assert (done.returncode == 0) is is_right


@pytest.mark.parametrize("hook", hooks(), ids=lambda hook: hook["id"])
def test_a_hook_runs_a_command_of_make_check(hook: dict[str, Any]) -> None:
    words = shlex.split(hook["entry"])
    assert any(begins_with(each, words) for each in dry_run("check")), hook["entry"]


@pytest.mark.parametrize("hook", hooks(), ids=lambda hook: hook["id"])
def test_a_hook_passes_on_what_is_here(hook: dict[str, Any]) -> None:
    """As pre-commit would run it on all files."""
    words = shlex.split(hook["entry"])
    program = Path(sys.executable).parent / Path(words[0]).name
    names = ["src", "tests", "docs"] if hook.get("pass_filenames", True) else []
    done = subprocess.run([program, *words[1:], *names], cwd=ROOT, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_fast_check_is_part_of_the_check() -> None:
    """Each of its commands is one of `make check`, as it stands there or on less."""
    whole = dry_run("check")
    fast = [each for each in dry_run("check-fast") if each[0] != "make"]
    assert [each for each in fast if each in whole] == whole[:3]
    types, tests = fast[3:]
    assert begins_with(types, whole[3])
    assert begins_with(tests, whole[-1])
    assert types[1:] == ["src"]
    assert {"tests/unit", "tests/fundamentals", "tests/behaviour"} < set(tests)


def test_what_the_fast_check_leaves_out_is_there_to_be_left_out() -> None:
    """A name that no test has would leave out nothing, and nobody would notice."""
    (chosen,) = [each[each.index("-k") + 1] for each in dry_run("check-fast") if "-k" in each]
    left_out = chosen.removeprefix("not (").removesuffix(")")
    folders = [ROOT / "tests" / each for each in ("unit", "fundamentals", "behaviour")]
    texts = [f"{path.name}\n{path.read_text(encoding='utf-8')}" for each in folders for path in each.glob("*.py")]
    assert [each for each in left_out.split(" or ") if not any(each in text for text in texts)] == []
