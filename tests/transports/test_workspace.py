"""A look at a workspace sees every durable change, runs nothing of the repository's and touches nothing in it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tenuto.transports import workspace
from tenuto.transports.workspace import Kind, Workspace, content, facts, git, place, plain, status, witness

posix = pytest.mark.only_on("linux", "darwin")  # needs a POSIX file system and shell
PATIENCE = timedelta(seconds=90)


def run_git(directory: Path, *arguments: str, check: bool = True) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}
    author = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.invalid", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *author, *arguments],
        check=False,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert not check or done.returncode == 0, done.stderr
    return done.stdout.strip()


def repository(directory: Path, *options: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    run_git(directory, "init", "-q", "-b", "main", *options)
    return directory


def committed(directory: Path, **files: str) -> str:
    for name, text in files.items():
        (directory / name).write_text(text)
    run_git(directory, "add", "--all")
    run_git(directory, "commit", "-q", "--allow-empty", "-m", "step")
    return run_git(directory, "rev-parse", "HEAD")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's real configuration takes part."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    made = repository(tmp_path / "repo")
    committed(made, one="1\n", two="2\n")
    return made


def look(cwd: Path, timeout: timedelta = PATIENCE) -> Workspace:
    return asyncio.run(workspace.look(cwd, timeout=timeout))


def snapshot(directory: Path) -> dict[str, tuple[int, int, int]]:
    """Everything in a directory, the git directory included, by size, time and inode."""
    everything = {str(path.relative_to(directory)): path.lstat() for path in directory.rglob("*")}
    return {name: (found.st_size, found.st_mtime_ns, found.st_ino) for name, found in everything.items()}


# --- what is seen -----------------------------------------------------------


def test_a_clean_repository_is_its_head_and_branch(repo: Path) -> None:
    seen = look(repo)
    assert (seen.kind, seen.branch, seen.reason) == (Kind.GIT, "main", "")
    assert seen.head == run_git(repo, "rev-parse", "HEAD")
    assert seen == look(repo)


Act = Callable[[Path], object]


def add_below(repo: Path) -> None:
    (repo / "d").mkdir()
    (repo / "d" / "new").write_text("new\n")


def stage(repo: Path) -> None:
    (repo / "one").write_text("staged\n")
    run_git(repo, "add", "one")


def replace_by_link(repo: Path) -> None:
    (repo / "one").unlink()
    (repo / "one").symlink_to("two")


ACTS: dict[str, Act] = {
    "modifies a tracked file": lambda repo: (repo / "one").write_text("changed\n"),
    "adds an untracked file": lambda repo: (repo / "new").write_text("new\n"),
    "adds an untracked file in a directory": add_below,
    "deletes a tracked file": lambda repo: (repo / "one").unlink(),
    "stages": stage,
    "makes a file executable": lambda repo: (repo / "one").chmod(0o755),
    "replaces a file by a link": replace_by_link,
    "commits": lambda repo: committed(repo, three="3\n"),
}


@posix
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
def test_every_durable_change_moves_the_cursor(repo: Path, act: Act) -> None:
    before = look(repo)
    act(repo)
    after = look(repo)
    assert None not in (before.cursor, after.cursor)
    assert before.cursor != after.cursor
    assert after.cursor == look(repo).cursor


def test_new_content_in_an_already_dirty_file_is_seen(repo: Path) -> None:
    for name in ("one", "untracked"):
        (repo / name).write_text("aaaa\n")
        before, times = look(repo), (repo / name).stat()
        (repo / name).write_text("bbbb\n")
        os.utime(repo / name, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert look(repo).dirty != before.dirty, f"{name}: same size and time, other content"


def test_content_staged_and_then_hidden_by_the_work_tree_counts(repo: Path) -> None:
    seen = set()
    for text in ("x\n", "y\n"):
        (repo / "one").write_text(text)
        run_git(repo, "add", "one")
        (repo / "one").write_text("1\n")
        seen.add(look(repo).dirty)
    assert len(seen) == 2


def test_what_is_undone_reads_as_it_was(repo: Path) -> None:
    before = look(repo)
    (repo / "one").write_text("changed\n")
    assert look(repo) != before
    (repo / "one").write_text("1\n")
    assert look(repo) == before


def test_touching_a_file_and_ignored_files_are_no_progress(repo: Path) -> None:
    committed(repo, **{".gitignore": "build/\n"})
    before = look(repo)
    os.utime(repo / "one", (1, 1))
    (repo / "build").mkdir()
    (repo / "build" / "log").write_text("noise")
    assert look(repo) == before


def test_the_whole_repository_counts_from_a_directory_below(repo: Path) -> None:
    (repo / "below").mkdir()
    committed(repo, **{"below/x": "x"})
    assert look(repo / "below") == look(repo)
    (repo / "one").write_text("changed\n")
    assert look(repo / "below") == look(repo)


def test_an_ignored_directory_is_a_plain_one(repo: Path) -> None:
    committed(repo, **{".gitignore": "scratch/\n"})
    (repo / "scratch").mkdir()
    before = look(repo / "scratch")
    (repo / "scratch" / "x").write_text("x")
    after = look(repo / "scratch")
    assert (before.kind, after.kind) == (Kind.PLAIN, Kind.PLAIN)
    assert before.cursor != after.cursor


def test_a_large_file_counts_by_size_and_time(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "FILE_LIMIT", 8)
    (repo / "large").write_text("0123456789")
    before, times = look(repo), (repo / "large").stat()
    (repo / "large").write_text("9876543210")
    os.utime(repo / "large", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert look(repo) == before
    os.utime(repo / "large", ns=(1, 1))
    assert look(repo) != before


def test_too_many_paths_are_unknown_not_unchanged(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "PATH_LIMIT", 3)
    for number in range(4):
        (repo / f"new{number}").write_text("x")
    seen = look(repo)
    assert seen.kind is Kind.GIT
    assert seen.head == run_git(repo, "rev-parse", "HEAD")
    assert (seen.dirty, seen.cursor) == (None, None)
    assert "differ from HEAD" in seen.reason


def test_a_repository_before_its_first_commit(tmp_path: Path) -> None:
    empty = repository(tmp_path / "empty")
    seen = look(empty)
    assert (seen.kind, seen.head, seen.branch, seen.reason) == (Kind.GIT, None, "main", "")
    (empty / "x").write_text("x")
    assert look(empty).cursor not in (None, seen.cursor)


def test_a_detached_head_has_no_branch(repo: Path) -> None:
    run_git(repo, "checkout", "-q", "--detach")
    assert look(repo).branch is None
    assert look(repo).head == run_git(repo, "rev-parse", "HEAD")


def test_names_of_any_bytes(repo: Path) -> None:
    before = look(repo)
    for name in ("with space", 'with"quote', "ümlaut", "-dash", "# branch.oid x"):
        (repo / name).write_text("x")
        after = look(repo)
        assert after.reason == ""
        assert after.cursor != before.cursor
        before = after


def test_a_merge_conflict_is_read(repo: Path) -> None:
    run_git(repo, "checkout", "-q", "-b", "other")
    committed(repo, one="theirs\n")
    run_git(repo, "checkout", "-q", "main")
    committed(repo, one="ours\n")
    run_git(repo, "merge", "other", check=False)
    before = look(repo)
    assert (before.kind, before.reason) == (Kind.GIT, "")
    (repo / "one").write_text("resolved\n")
    assert look(repo).dirty != before.dirty


def test_a_submodule_counts_as_its_head(repo: Path, tmp_path: Path) -> None:
    other = repository(tmp_path / "other")
    committed(other, x="x")
    run_git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    committed(repo)
    clean = look(repo)
    (repo / "sub" / "x").write_text("dirt inside")
    assert look(repo) == clean
    committed(repo / "sub", y="y")
    first = look(repo)
    committed(repo / "sub", z="z")
    assert len({clean.cursor, first.cursor, look(repo).cursor}) == 3


def test_a_nested_repository_counts_as_its_head(repo: Path) -> None:
    nested = repository(repo / "nested")
    before = look(repo)
    committed(nested, x="x")
    assert look(repo).cursor not in (None, before.cursor)


def test_a_linked_worktree_and_its_own_lock(repo: Path, tmp_path: Path) -> None:
    run_git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    seen = look(tmp_path / "side")
    assert (seen.kind, seen.branch, seen.lock_since) == (Kind.GIT, "side", None)
    lock = repo / ".git" / "worktrees" / "side" / "index.lock"
    lock.touch()
    assert look(tmp_path / "side").lock_since is not None
    assert look(repo).lock_since is None


def test_a_lock_left_behind_is_seen_with_its_age_and_does_not_hinder(repo: Path) -> None:
    lock = repo / ".git" / "index.lock"
    lock.touch()
    os.utime(lock, (1_000_000, 1_000_000))
    seen = look(repo)
    assert seen.cursor is not None
    assert seen.lock_age(datetime.fromtimestamp(1_000_090, UTC)) == timedelta(seconds=90)
    assert seen.lock_age(datetime.fromtimestamp(999_000, UTC)) == timedelta(0)
    assert lock.exists()


def test_commits_are_counted_up_to_a_limit(repo: Path, tmp_path: Path) -> None:
    def since(cwd: Path, base: str) -> int | None:
        return asyncio.run(workspace.commits_since(cwd, base, timeout=PATIENCE))

    base = run_git(repo, "rev-parse", "HEAD")
    assert since(repo, base) == 0
    committed(repo, a="a")
    committed(repo, a="b")
    assert since(repo, base) == 2
    assert since(repo, "0" * 40) is None
    assert since(repo, "--all") is None
    assert since(tmp_path / "nowhere", base) is None


# --- what is broken ---------------------------------------------------------


def test_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("nowhere", "file", "file/below", "loop", "dangling", "n" * 5000, "zero\0byte"):
        seen = look(tmp_path / name)
        assert seen.kind is Kind.MISSING, name
        assert seen.reason
        assert seen.cursor is None


def test_a_link_to_a_repository_is_the_repository(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repo, target_is_directory=True)
    assert look(tmp_path / "link") == look(repo)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root may read everything; be somebody else for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@posix
def test_a_directory_that_may_not_be_read(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    for mode in (0o000, 0o444):
        closed.chmod(mode)
        try:
            with unprivileged():
                found = place.find(closed)
            assert isinstance(found, Workspace)
            assert found.kind is Kind.UNREADABLE
            assert found.reason
        finally:
            closed.chmod(0o700)


@posix
def test_a_file_that_may_not_be_read_or_would_block(repo: Path) -> None:
    os.mkfifo(repo / "pipe")
    (repo / "one").unlink()
    os.mkfifo(repo / "one")
    seen = look(repo)
    assert (seen.kind, seen.reason) == (Kind.GIT, "")
    assert content.fingerprint(os.fsencode(repo / "pipe"), 100, lambda: False)[0].startswith(b"special")
    assert content.fingerprint(os.fsencode(repo / "gone"), 100, lambda: False) == (b"absent", 0)


def break_head(repo: Path) -> None:
    (repo / ".git" / "HEAD").write_text("nonsense")


def break_index(repo: Path) -> None:
    (repo / ".git" / "index").write_bytes(b"nonsense")


def break_config(repo: Path) -> None:
    (repo / ".git" / "config").write_text("[nonsense")


def break_version(repo: Path) -> None:
    run_git(repo, "config", "core.repositoryformatversion", "99")


def break_pointer(repo: Path) -> None:
    shutil.rmtree(repo / ".git")
    (repo / ".git").write_text("gitdir: elsewhere")


def break_objects(repo: Path) -> None:
    shutil.rmtree(repo / ".git" / "objects")
    (repo / ".git" / "objects").mkdir()


def break_branch(repo: Path) -> None:
    (repo / ".git" / "refs" / "heads" / "main").write_text("nonsense\n")


def turn_branch_on_itself(repo: Path) -> None:
    (repo / ".git" / "refs" / "heads" / "main").write_text("ref: refs/heads/main\n")


BROKEN = [break_head, break_index, break_config, break_version, break_pointer, break_objects]


@pytest.mark.parametrize(
    "harm",
    [*BROKEN, break_branch, turn_branch_on_itself],
    ids=lambda f: f.__name__,
)
def test_a_broken_repository_is_unknown_with_a_reason(repo: Path, harm: Act) -> None:
    harm(repo)
    seen = look(repo)
    assert (seen.kind, seen.cursor) == (Kind.UNKNOWN, None)
    assert seen.reason
    assert seen.reason.isprintable()


@posix
@pytest.mark.parametrize("where", ["index", "config", "HEAD", "info/exclude", "objects/info/alternates"])
def test_a_repository_that_would_have_a_look_wait_for_ever_is_unknown(repo: Path, where: str) -> None:
    """A pipe that nobody writes to, where git reads a file: the look ends when its time is over."""
    pipe = repo / ".git" / where
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    seen = look(repo, timedelta(seconds=0.5))
    assert (seen.kind, seen.cursor) == (Kind.UNKNOWN, None)
    assert "longer" in seen.reason


@posix
def test_a_git_directory_that_is_a_link_out_of_the_tree_runs_nothing_and_a_pipe_is_none(
    repo: Path, tmp_path: Path
) -> None:
    before = look(repo)
    (repo / ".git").rename(tmp_path / "elsewhere.git")
    (repo / ".git").symlink_to(tmp_path / "elsewhere.git")
    run_git(repo, "config", "core.fsmonitor", f"touch {tmp_path}/sprung")
    run_git(repo, "config", "alias.status", f"!touch {tmp_path}/sprung")
    (tmp_path / "sprung").unlink(missing_ok=True)
    assert look(repo).cursor == before.cursor
    assert not (tmp_path / "sprung").exists()
    (repo / ".git").unlink()
    os.mkfifo(repo / ".git")
    assert look(repo).kind is Kind.PLAIN


def test_an_address_of_a_submodule_is_not_gone_to(repo: Path, tmp_path: Path) -> None:
    (repo / ".gitmodules").write_text(f'[submodule "s"]\n\tpath = s\n\turl = ext::touch {tmp_path}/sprung\n')
    run_git(repo, "add", ".gitmodules")
    run_git(repo, "update-index", "--add", "--cacheinfo", f"160000,{run_git(repo, 'rev-parse', 'HEAD')},s")
    (repo / "s").mkdir()
    assert look(repo).kind is Kind.GIT
    assert not (tmp_path / "sprung").exists()


def test_a_bare_repository_and_the_inside_of_one_are_unknown(repo: Path, tmp_path: Path) -> None:
    bare = repository(tmp_path / "bare", "--bare")
    for directory in (bare, bare / "refs", repo / ".git", repo / ".git" / "refs"):
        assert look(directory).kind is Kind.UNKNOWN, directory
        assert look(directory).reason


def test_without_a_git_program_a_repository_is_unknown(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([".", "bin", str(repo)]))
    seen = look(repo)
    assert (seen.kind, seen.reason) == (Kind.UNKNOWN, "no git program is installed")


# --- outside git ------------------------------------------------------------


def test_a_plain_directory_counts_by_path_size_and_time(tmp_path: Path) -> None:
    directory = tmp_path / "plain"
    (directory / "a").mkdir(parents=True)
    (directory / ".git").mkdir()  # an empty one makes no repository
    seen = [look(directory)]
    (directory / "a" / "x").write_text("1")
    seen.append(look(directory))
    (directory / "a" / "x").rename(directory / "a" / "y")
    seen.append(look(directory))
    os.utime(directory / "a" / "y", (1, 1))
    seen.append(look(directory))
    assert {one.kind for one in seen} == {Kind.PLAIN}
    assert len({one.cursor for one in seen} - {None}) == 4
    assert look(directory) == seen[-1]


def test_too_many_plain_files_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "plain"
    directory.mkdir()
    for number in range(4):
        (directory / str(number)).touch()
    monkeypatch.setattr(plain, "PATH_LIMIT", 4)
    assert look(directory).cursor is not None
    (directory / "one more").touch()
    assert (look(directory).kind, look(directory).cursor) == (Kind.PLAIN, None)
    assert look(directory).reason


@posix
def test_links_in_a_plain_directory_are_not_followed(tmp_path: Path) -> None:
    directory = tmp_path / "plain"
    directory.mkdir()
    (directory / "up").symlink_to("..")
    before = look(directory)
    (tmp_path / "outside").write_text("x")
    assert look(directory) == before


def test_of_a_repository_inside_a_plain_directory_only_its_head_counts(tmp_path: Path) -> None:
    directory = tmp_path / "plain"
    nested = repository(directory / "nested")
    committed(nested, x="x")
    before = look(directory)
    os.utime(nested / ".git" / "index", (1, 1))
    assert look(directory) == before
    run_git(nested, "commit", "-q", "--allow-empty", "-m", "empty")
    assert look(directory) != before


# --- what must not happen ---------------------------------------------------


def trap(directory: Path, name: str, marks: Path, then: str = "cat") -> str:
    """A program that leaves a mark when it is run."""
    script = directory / f"trap-{name}"
    script.write_text(f"#!/bin/sh\necho ran >> '{marks}/{name}'\n{then}\n")
    script.chmod(0o755)
    return str(script)


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[Path, Path]:
    """A repository in which everything that can name a program names one, and the place where they leave marks."""
    repo, traps, marks = repository(tmp_path / "hostile"), tmp_path / "traps", tmp_path / "marks"
    traps.mkdir()
    marks.mkdir()
    committed(repo, data="1\n", other="2\n")
    attributes = "data filter=evil diff=evil merge=evil\nother filter=a.b=c\nnew filter=long\n"
    (repo / ".git" / "info").mkdir(exist_ok=True)
    (repo / ".git" / "info" / "attributes").write_text(attributes)
    hooks = traps / "hooks"
    hooks.mkdir()
    for hook in ("post-index-change", "post-checkout", "reference-transaction", "pre-commit", "fsmonitor-watchman"):
        shutil.copy(trap(traps, f"hook-{hook}", marks, "true"), hooks / hook)
    included = traps / "included"
    included.write_text(f'[filter "a.b=c"]\n\tclean = {trap(traps, "included-clean", marks)}\n\trequired = true\n')
    settings = {
        "filter.evil.clean": trap(traps, "clean", marks),
        "filter.evil.smudge": trap(traps, "smudge", marks),
        "filter.evil.required": "true",
        "filter.long.process": trap(traps, "process", marks, "exit 1"),
        "filter.long.required": "true",
        "include.path": str(included),
        "core.fsmonitor": trap(traps, "fsmonitor", marks, "exit 1"),
        "core.hooksPath": str(hooks),
        "core.pager": trap(traps, "pager", marks),
        "pager.status": "true",
        "core.editor": trap(traps, "editor", marks),
        "core.sshCommand": trap(traps, "ssh", marks, "exit 1"),
        "core.askPass": trap(traps, "askpass", marks),
        "core.untrackedCache": "true",
        "diff.external": trap(traps, "external", marks),
        "diff.evil.command": trap(traps, "command", marks),
        "diff.evil.textconv": trap(traps, "textconv", marks),
        "merge.evil.driver": trap(traps, "driver", marks),
        "gpg.program": trap(traps, "gpg", marks),
        "log.showSignature": "true",
        "credential.helper": trap(traps, "credential", marks),
        "alias.status": f"!{trap(traps, 'alias', marks)}",
        "alias.rev-list": f"!{trap(traps, 'alias-list', marks)}",
        "status.submoduleSummary": "true",
        "status.showUntrackedFiles": "no",
    }
    for key, value in settings.items():
        run_git(repo, "config", key, value)
    (repo / "data").write_text("3\n")
    (repo / "other").write_text("4\n")
    (repo / "new").write_text("5\n")
    for path in marks.iterdir():
        path.unlink()
    return repo, marks


@posix
def test_nothing_the_repository_configures_is_run(hostile: tuple[Path, Path]) -> None:
    repo, marks = hostile
    base = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repo, capture_output=True, text=True, check=True).stdout
    seen = look(repo)
    asyncio.run(workspace.commits_since(repo, base.strip(), timeout=PATIENCE))
    assert (seen.kind, seen.reason) == (Kind.GIT, "")
    (repo / "new").write_text("6\n")
    assert look(repo).cursor not in (None, seen.cursor)
    # Same size as the index remembers, other time: git must read the content to know.
    (repo / "data").write_text("1\n")
    os.utime(repo / "data", (1, 1))
    assert look(repo).cursor is not None
    assert [path.name for path in marks.iterdir()] == []
    run_git(repo, "status", check=False)
    sprung = {path.name for path in marks.iterdir()}
    assert {"clean", "fsmonitor"} <= sprung, "the traps do work when git is asked carelessly"


@posix
def test_nothing_a_submodule_configures_is_run(hostile: tuple[Path, Path], tmp_path: Path) -> None:
    inner, marks = hostile
    repo = repository(tmp_path / "outer")
    inner.rename(repo / "sub")
    base = run_git(repo / "sub", "rev-parse", "HEAD")
    run_git(repo, "update-index", "--add", "--cacheinfo", f"160000,{base},sub")
    (repo / ".gitmodules").write_text('[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n')
    run_git(repo, "config", "submodule.sub.url", "./sub")
    run_git(repo, "config", "submodule.sub.active", "true")
    for path in marks.iterdir():
        path.unlink()
    before = look(repo)
    run_git(repo / "sub", "-c", "core.hooksPath=/dev/null", "update-ref", "HEAD", moved_head(repo / "sub"))
    after = look(repo)
    assert before.cursor not in (None, after.cursor)
    assert [path.name for path in marks.iterdir()] == []
    run_git(repo, "status", check=False)
    assert list(marks.iterdir()), "the traps do work when git is asked carelessly"


def moved_head(repo: Path) -> str:
    """A new commit made without touching index, work tree or hooks."""
    return run_git(repo, "commit-tree", "-p", "HEAD", "-m", "moved", "HEAD^{tree}")


@posix
def test_a_missing_object_is_not_fetched(repo: Path, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    command = trap(tmp_path, "remote", marks, "exit 1")
    run_git(repo, "config", "core.repositoryformatversion", "1")
    run_git(repo, "config", "extensions.partialClone", "origin")
    run_git(repo, "config", "remote.origin.url", f"ext::{command}")
    run_git(repo, "config", "remote.origin.promisor", "true")
    run_git(repo, "config", "protocol.ext.allow", "always")
    tree = run_git(repo, "rev-parse", "HEAD^{tree}")
    (repo / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    seen = look(repo)
    assert seen.kind in (Kind.UNKNOWN, Kind.GIT)
    assert list(marks.iterdir()) == []
    run_git(repo, "read-tree", "HEAD", check=False)
    assert [path.name for path in marks.iterdir()] == ["remote"], "git would fetch it, asked carelessly"


@posix
def test_a_look_writes_nothing_and_refreshes_nothing(repo: Path) -> None:
    os.utime(repo / "one", (1, 1))
    (repo / "new").write_text("x")
    before = snapshot(repo)
    look(repo)
    assert snapshot(repo) == before
    run_git(repo, "status")
    assert snapshot(repo) != before, "an ordinary status rewrites the index"


def test_a_configured_work_tree_elsewhere_is_not_followed(repo: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    before = look(repo)
    run_git(repo, "config", "core.worktree", str(elsewhere))
    (elsewhere / "x").write_text("x")
    assert look(repo) == before


def test_our_own_git_environment_does_not_leak_in(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = look(repo)
    other = repository(tmp_path / "other")
    committed(other, x="x")
    trace = tmp_path / "trace"
    leaks = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_OBJECT_DIRECTORY": str(tmp_path),
        "GIT_NAMESPACE": "x",
        "GIT_TRACE": str(trace),
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_CONFIG_PARAMETERS": "'core.bare=true'",
        "GIT_CONFIG_COUNT": "nonsense",
    }
    for name, value in leaks.items():
        monkeypatch.setenv(name, value)
    assert look(repo) == before
    assert not trace.exists()


def test_a_repository_of_another_user_is_looked_at(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = "GIT_TEST_ASSUME_DIFFERENT_OWNER"  # git's own switch to try its ownership check
    before = look(repo)
    monkeypatch.setitem(git.QUIET, foreign, "1")
    assert look(repo) == before
    environment = {**os.environ, foreign: "1"}
    careless = subprocess.run(
        ["git", "status"], check=False, cwd=repo, env=environment, capture_output=True, timeout=30
    )
    assert b"dubious ownership" in careless.stderr


@posix
def test_a_look_that_takes_too_long_ends_with_all_it_started(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    pids = tmp_path / "pids"
    slow = tools / "git"
    slow.write_text(f"#!/bin/sh\nsleep 60 &\necho $$ $! > '{pids}'\nwait\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    began = time.monotonic()
    seen = look(repo, timedelta(seconds=0.5))
    assert time.monotonic() - began < 30
    assert (seen.kind, seen.reason) == (Kind.UNKNOWN, "looking took longer than 0.5 s")
    from tenuto.transports import processes

    end = time.monotonic() + 5
    while any(processes.identity_of(int(pid)) for pid in pids.read_text().split()):
        if time.monotonic() > end:
            raise TimeoutError("something of it still runs")
        time.sleep(0.01)


def test_an_endless_answer_is_cut(repo: Path) -> None:
    whole = git.Repository(repo, repo / ".git")
    answer = asyncio.run(git.ask(whole, "status", "--porcelain=v2", "--branch", limit=10))
    assert answer.cut
    assert len(answer.output) == 10


# --- the pure parts ---------------------------------------------------------


def test_filters_of_any_name_are_silenced() -> None:
    listing = b"filter.lfs.clean\0FILTER.Odd=Name.x.process\0core.bare\0filter.alone\0"
    keys = dict(git.filter_overrides(listing))
    assert keys["filter.lfs.clean"] == ""
    assert keys["filter.Odd=Name.x.process"] == ""
    assert keys["filter.lfs.required"] == "false"
    assert len(keys) == 8
    with pytest.raises(ValueError, match="more than 500"):
        git.filter_overrides(b"\0".join(b"filter.n%d.clean" % number for number in range(501)))


def test_a_status_of_unknown_shape_is_refused() -> None:
    for line in (b"9 what\0", b"1 .M N... 100644\0", b"! ignored\0"):
        with pytest.raises(ValueError, match="a status line"):
            status.parse(line, 10)


def test_the_digest_frames_its_parts() -> None:
    assert facts.digest((b"ab", b"c")) != facts.digest((b"a", b"bc"))
    assert facts.git_cursor("a" * 40, None) is None
    assert facts.git_cursor(None, "d") != facts.git_cursor("a" * 40, "d")


def test_how_far_a_branch_is_from_what_it_follows(repo: Path, tmp_path: Path) -> None:
    assert (look(repo).ahead, look(repo).behind) == (None, None)
    run_git(tmp_path, "clone", "--quiet", str(repo), "copy")
    copy = tmp_path / "copy"
    assert (look(copy).ahead, look(copy).behind) == (0, 0)
    committed(repo, theirs="1")
    committed(repo, theirs="2")
    run_git(copy, "fetch", "--quiet")
    committed(copy, ours="1")
    assert (look(copy).ahead, look(copy).behind) == (1, 2)
    run_git(copy, "checkout", "--quiet", "--detach")
    assert look(copy).ahead is None


def test_other_worktrees_of_a_repository_are_counted(repo: Path, tmp_path: Path) -> None:
    assert look(repo).worktrees == 0
    run_git(repo, "worktree", "add", "--quiet", str(tmp_path / "one"))
    run_git(repo, "worktree", "add", "--quiet", str(tmp_path / "two"))
    assert look(repo).worktrees == 2
    assert look(tmp_path / "one").worktrees == 2
