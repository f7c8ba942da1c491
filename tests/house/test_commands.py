"""The commands of the tree can be run, are careful, and say clearly what they lack."""

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

COMMANDS = ["run", "check", "test", "prove", ".ci/run", "scripts/lock"]
SOURCED = ["scripts/prepare"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_executable_and_strict(name: str, root: Path) -> None:
    path = root / name
    assert path.stat().st_mode & stat.S_IXUSR
    lines = path.read_text("utf-8").splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in lines


def test_git_keeps_the_commands_executable(root: Path) -> None:
    said = subprocess.run(
        ["git", "ls-files", "--stage", *COMMANDS], cwd=root, check=True, capture_output=True, text=True, timeout=30
    )
    modes = {line.split("\t")[1]: line.split()[0] for line in said.stdout.splitlines()}
    assert modes == dict.fromkeys(sorted(COMMANDS), "100755")


@pytest.mark.parametrize("name", COMMANDS + SOURCED)
def test_bash_can_read_it(name: str, root: Path) -> None:
    subprocess.run(["bash", "-n", str(root / name)], check=True, timeout=30)


def prepared(tree: Path, level: str, path: str) -> subprocess.CompletedProcess[str]:
    """Source a tree's scripts/prepare with only `path` to find programs in."""
    bash = shutil.which("bash")
    assert bash is not None
    return subprocess.run(
        [bash, "-c", f"set -euo pipefail; source '{tree}/scripts/prepare' {level}"],
        env={"PATH": path, "HOME": str(tree)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def bare(tmp_path: Path, root: Path) -> Path:
    """A tree with nothing but what scripts/prepare reads, and a system with a few programs in bin/."""
    (tmp_path / "scripts").mkdir()
    for name in ("scripts/prepare", "requirements.lock", "pyproject.toml"):
        shutil.copy(root / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    for name in ("cat", "dirname", "head", "sha256sum", "rm"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / "bin" / name).symlink_to(found)
    program(tmp_path / "bin" / "id", "echo 1000")
    program(tmp_path / "bin" / "git", "exit 0")
    return tmp_path


def program(path: Path, body: str) -> None:
    """Write a small program for the bare system."""
    path.write_text(f"#!{shutil.which('bash')}\n{body}\n", "utf-8")
    path.chmod(0o755)


def test_an_old_python_is_named(bare: Path) -> None:
    program(bare / "bin" / "python3", 'if [ "$1" = --version ]; then echo Python 3.9.2; else exit 1; fi')
    said = prepared(bare, "run", str(bare / "bin"))
    assert said.returncode == 2
    assert "needs Python 3.11 or newer" in said.stderr
    assert "Python 3.9.2" in said.stderr


def test_a_missing_part_is_named_with_the_way_to_install_it(bare: Path) -> None:
    program(bare / "bin" / "python3", "exit 0")
    (bare / "bin" / "git").unlink()
    said = prepared(bare, "run", str(bare / "bin"))
    assert said.returncode == 2
    assert "missing on this system: git" in said.stderr
    assert "apt-get install --no-install-recommends git" in said.stderr


def test_a_python_without_venv_is_named(bare: Path) -> None:
    program(bare / "bin" / "python3", 'case "$2" in *ensurepip*) exit 1 ;; *) exit 0 ;; esac')
    said = prepared(bare, "check", str(bare / "bin"))
    assert said.returncode == 2
    assert "python3-venv" in said.stderr


def test_an_unknown_level_is_refused(bare: Path) -> None:
    program(bare / "bin" / "python3", "exit 0")
    said = prepared(bare, "everything", str(bare / "bin"))
    assert said.returncode == 2
    assert "no level named 'everything'" in said.stderr


def test_nothing_is_made_when_nothing_changed(bare: Path) -> None:
    """With a fitting stamp, prepare starts no Python at all: the one on the PATH would fail."""
    program(bare / "bin" / "python3", "echo started; exit 1")
    (bare / ".venv" / "bin").mkdir(parents=True)
    program(bare / ".venv" / "bin" / "python", "echo started; exit 1")
    digests = subprocess.run(
        ["sha256sum", "requirements.lock", "pyproject.toml"],
        cwd=bare,
        check=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    (bare / ".venv" / "stamp").write_text(f"{bare}\n{digests.stdout}", "utf-8")
    said = prepared(bare, "run", str(bare / "bin"))
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
