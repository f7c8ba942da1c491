"""What is read of other programs' registries: recognised by content, and nothing guessed or taken that may be sent."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tenuto.model.foreign import Item, Source
from tenuto.transports.foreign import cws, database, looking
from tenuto.transports.foreign.database import NotReadable

SESSION = "s_" + "1" * 24
URL = "https://chat.example/c/1"

#: The tables of that program that are read here, with the columns it has had since its first schema, and later ones.
SCHEMA = """
CREATE TABLE tasks(task_id TEXT PRIMARY KEY, project TEXT NOT NULL, objective TEXT NOT NULL, cwd TEXT NOT NULL,
  state TEXT NOT NULL, lsm_session_id TEXT, checkpoint_json TEXT NOT NULL DEFAULT '{}', current_worker_id TEXT,
  recovery_attempts INTEGER NOT NULL DEFAULT 0, max_recovery_attempts INTEGER NOT NULL DEFAULT 3,
  created_at REAL NOT NULL, updated_at REAL NOT NULL);
CREATE TABLE workers(worker_id TEXT PRIMARY KEY, task_id TEXT NOT NULL, conversation_url TEXT NOT NULL,
  conversation_id TEXT, status TEXT NOT NULL, started_at REAL NOT NULL, last_seen_at REAL, ended_at REAL);
CREATE TABLE task_jobs(task_id TEXT NOT NULL, job_id TEXT NOT NULL, PRIMARY KEY(task_id, job_id));
"""
LATER = """
CREATE TABLE action_attempts(attempt_id TEXT PRIMARY KEY, task_id TEXT NOT NULL, worker_id TEXT NOT NULL,
  state TEXT NOT NULL, created_at REAL NOT NULL, updated_at REAL NOT NULL, payload_json TEXT NOT NULL);
CREATE TABLE probe_mutation_operations(operation_id TEXT PRIMARY KEY, nonce TEXT NOT NULL, kind TEXT NOT NULL,
  state TEXT NOT NULL, slot_id TEXT NOT NULL, target_task_id TEXT NOT NULL, target_worker_id TEXT NOT NULL,
  created_at REAL NOT NULL, updated_at REAL NOT NULL, payload_json TEXT NOT NULL);
CREATE TABLE worker_protocol_tasks(task_id TEXT PRIMARY KEY, revision INTEGER, generation INTEGER, task_status TEXT,
  current_worker_id TEXT, handoff_target_worker_id TEXT, handoff_requested_at REAL, parent_task_id TEXT,
  root_task_id TEXT, child_key TEXT, completed_at REAL, completion_ref TEXT);
"""


class Registry:
    """A registry of that program, made row by row."""

    def __init__(self, folder: Path, version: int = 6) -> None:
        self.path = folder / "registry.sqlite3"
        self.cwd = folder / "repo"
        self.cwd.mkdir(exist_ok=True)
        self.made = sqlite3.connect(self.path, isolation_level=None)
        self.made.execute("PRAGMA journal_mode = WAL")
        self.made.executescript(SCHEMA + (LATER if version > 1 else ""))
        self.made.execute(f"PRAGMA user_version = {version}")

    def task(self, name: str, state: str = "RUNNING", *, worker: str | None = "active", **more: Any) -> None:
        holder = f"w-{name}" if worker is not None else None
        row = {
            "task_id": name, "project": "p", "objective": f"do {name}", "cwd": str(self.cwd), "state": state,
            "lsm_session_id": SESSION, "current_worker_id": holder, "created_at": 1_700_000_000.0,
            "updated_at": 1_700_000_100.0,
        } | more  # fmt: skip
        self.insert("tasks", row)
        if worker is not None:
            self.insert("workers", {
                "worker_id": f"w-{name}", "task_id": name, "conversation_url": URL, "status": worker, "started_at": 1.0,
            })  # fmt: skip

    def insert(self, table: str, row: dict[str, Any]) -> None:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        self.made.execute(f"INSERT INTO {table}({names}) VALUES ({marks})", tuple(row.values()))

    def attempt(self, task: str, state: str) -> None:
        self.insert("action_attempts", {
            "attempt_id": f"a-{task}", "task_id": task, "worker_id": f"w-{task}", "state": state, "created_at": 1.0,
            "updated_at": 1.0, "payload_json": "{}",
        })  # fmt: skip

    def read(self) -> Source:
        return looking.of_file(self.path)


def left(found: Source) -> dict[str, str]:
    return {each.origin: each.why for each in found.left if not each.over}


def taken(items: Iterable[Item]) -> list[str]:
    return [item.origin for item in items]


@pytest.mark.parametrize("version", [1, 2, 5, 6])
def test_a_registry_of_cws_is_recognised_and_its_open_tasks_are_read(tmp_path: Path, version: int) -> None:
    it = Registry(tmp_path, version)
    it.task("t1")
    it.task("over", "COMPLETED", worker=None)
    it.insert("task_jobs", {"task_id": "t1", "job_id": "job_1"})
    found = it.read()
    assert found.kind == f"CWS registry, schema {version}"
    (item,) = found.items
    assert (item.origin, item.objective, item.cwd, item.place, item.session) == (
        "t1", "do t1", str(it.cwd), URL, SESSION,
    )  # fmt: skip
    assert dict(item.facts) == {"state": "running", "workers": "1", "tracked_jobs": "1", "recoveries": "0"}
    assert item.seen_at is not None
    assert [each.origin for each in found.left if each.over] == ["over"]


@pytest.mark.parametrize("state", sorted(cws.UNRESOLVED))
def test_a_task_whose_send_may_have_arrived_is_not_taken(tmp_path: Path, state: str) -> None:
    it = Registry(tmp_path)
    it.task("t1")
    it.attempt("t1", state)
    it.task("t2")
    it.attempt("t2", "ACKNOWLEDGED")
    found = it.read()
    assert taken(found.items) == ["t2"]
    assert state in left(found)["t1"]


def test_what_is_ambiguous_is_refused_by_name(tmp_path: Path) -> None:
    it = Registry(tmp_path)
    it.task("abandoned", "ABANDONED")
    it.task("new-word", "SLEEPING")
    it.task("parked", worker="parked")
    it.task("unnamed")
    it.made.execute("UPDATE tasks SET current_worker_id = NULL WHERE task_id = 'unnamed'")
    it.task("other", current_worker_id="somebody")
    it.task("gone", cwd=str(tmp_path / "nowhere"))
    it.task("relative", cwd="repo")
    it.task("empty", objective=" ")
    it.task("protocol")
    it.insert("worker_protocol_tasks", {"task_id": "protocol", "task_status": "completed", "current_worker_id": None})
    it.task("handing")
    it.insert("worker_protocol_tasks", {
        "task_id": "handing", "task_status": "open", "current_worker_id": "w-handing", "handoff_target_worker_id": "w",
    })  # fmt: skip
    it.task("probed")
    it.insert("probe_mutation_operations", {
        "operation_id": "o", "nonce": "n", "kind": "OPEN", "state": "OPEN_SUBMITTED", "slot_id": "s",
        "target_task_id": "probed", "target_worker_id": "w", "created_at": 1.0, "updated_at": 1.0, "payload_json": "{}",
    })  # fmt: skip
    it.task("good", worker=None)
    found = it.read()
    assert taken(found.items) == ["good"]
    assert set(left(found)) == {
        "abandoned", "new-word", "parked", "unnamed", "other", "gone", "relative", "empty", "protocol", "handing",
        "probed",
    }  # fmt: skip


def test_a_newer_schema_is_not_read_and_the_source_is_not_touched(tmp_path: Path) -> None:
    it = Registry(tmp_path, 7)
    it.task("t1")
    before = {path.name: path.read_bytes() for path in tmp_path.glob("registry*")}
    found = it.read()
    assert found.kind is None
    assert "schema 7" in found.unread[0]
    assert {path.name: path.read_bytes() for path in tmp_path.glob("registry*")} == before
    assert "registry.sqlite3-wal" in before, "what stands only in its log is read too"


def test_a_registry_keeps_its_name_when_its_file_moves_and_grows(tmp_path: Path) -> None:
    it = Registry(tmp_path)
    it.task("t1")
    name = it.read().name
    for number in range(5):
        it.task(f"later-{number}", created_at=1_700_000_001.0 + number)
    assert name.startswith("cws ")
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    it.made.close()
    target = it.path.rename(moved / "r.db")
    assert looking.of_file(target).name == looking.of_file(target).name
    other = Registry(tmp_path / "repo")
    other.task("x")
    assert other.read().name != name


# -- Kookr


def kookr_task(origin: str, cwd: Path, **more: Any) -> dict[str, Any]:
    at = "2026-07-01T12:00:00.000Z"
    told = {"id": origin, "prompt": f"do {origin}", "cwd": str(cwd), "status": "inProgress", "name": f"Do {origin}"}
    return told | {"agentType": "claude", "sessions": [], "createdAt": at, "updatedAt": at} | more


@pytest.mark.parametrize("version", [1, 2])
def test_the_tasks_of_kookr_are_recognised_and_what_is_open_is_read(tmp_path: Path, version: int) -> None:
    path = tmp_path / ".kookr" / "tasks.json"
    path.parent.mkdir()
    rows = [
        kookr_task("run", tmp_path, sessions=[{"tmuxSession": "kookr-1"}, {"tmuxSession": "kookr-2"}]),
        kookr_task("wait", tmp_path, status="pending"),
        kookr_task("new", tmp_path, status="open", name=None),
        kookr_task("done", tmp_path, status="completed"),
        kookr_task("stopped", tmp_path, status="terminated"),
        kookr_task("gone", tmp_path / "nowhere"),
        kookr_task("twin", tmp_path),
        kookr_task("twin", tmp_path, prompt="another"),
    ]
    tree: Any = rows if version == 1 else {"version": 2, "lifetimeSpendUsd": 1.5, "tasks": rows}
    path.write_text(json.dumps(tree))
    before = path.read_bytes()
    (found,) = looking.at(tmp_path, None)
    assert found.kind == "Kookr tasks"
    assert taken(found.items) == ["run", "wait", "new"]
    run = next(item for item in found.items if item.origin == "run")
    assert (run.place, run.title, dict(run.facts)) == ("kookr-2", "Do run", {"state": "inProgress", "workers": "2"})
    assert run.seen_at is not None
    assert set(left(found)) == {"stopped", "gone", "twin"}
    assert "tried again" in left(found)["stopped"]
    rows.append(kookr_task("later", tmp_path, createdAt="2026-07-02T12:00:00.000Z"))
    moved = tmp_path / "moved.json"
    moved.write_text(json.dumps(tree))
    assert looking.of_file(moved).name == found.name, "it keeps its name when it moves and grows"
    assert path.read_bytes() == before


def test_a_file_of_kookr_of_another_version_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    for version in (3, "2", True, None):
        path.write_text(json.dumps({"version": version, "tasks": [kookr_task("one", tmp_path)]}))
        found = looking.of_file(path)
        assert found.kind is None
        assert not found.items
        assert "version" in found.unread[0]


#: The tables of its newer store that are read here, as it makes them, and one that is not.
KOOKR_STORE = """
CREATE TABLE tasks(id TEXT PRIMARY KEY, status TEXT NOT NULL, parent_task_id TEXT, project_id TEXT,
  agent_type TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, finished_at TEXT,
  is_terminal INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE task_sessions(tmux_session TEXT PRIMARY KEY, task_id TEXT NOT NULL, last_status TEXT);
CREATE TABLE store_meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE task_quarantine(quarantine_id INTEGER PRIMARY KEY, payload TEXT NOT NULL);
"""


def kookr_store(path: Path, rows: Iterable[dict[str, Any]], version: str | None = "1") -> sqlite3.Connection:
    path.parent.mkdir(exist_ok=True)
    made = sqlite3.connect(path)
    made.execute("PRAGMA journal_mode = WAL")
    made.executescript(KOOKR_STORE)
    if version is not None:
        made.execute("INSERT INTO store_meta VALUES ('schema_version', ?)", (version,))
    for told in rows:
        status, over = told["status"], told["status"] in ("completed", "cancelled", "terminated")
        kept = (told["id"], status, "claude", told["createdAt"], told["updatedAt"], int(over), json.dumps(told))
        made.execute("INSERT INTO tasks VALUES (?, ?, NULL, NULL, ?, ?, ?, NULL, ?, ?)", kept)
        for session in told["sessions"]:
            made.execute("INSERT INTO task_sessions VALUES (?, ?, NULL)", (session["tmuxSession"], told["id"]))
    made.commit()
    return made


def test_the_newer_store_of_kookr_is_read_and_rows_that_contradict_themselves_are_refused(tmp_path: Path) -> None:
    path = tmp_path / ".kookr-4801" / "tasks.sqlite"
    wrong = ("agent", "made", "again", "given", "shared", "two", "same")
    names = ("run", "wait", "done", "stopped", "gone", "status", "name", "over", "torn", "bare", *wrong)
    told = {name: kookr_task(name, tmp_path) for name in names}
    told["run"]["sessions"] = [{"tmuxSession": "kookr-1"}, {"tmuxSession": "kookr-2"}]
    told["shared"]["sessions"] = [{"tmuxSession": "kookr-9"}]
    told["two"]["sessions"] = [{"tmuxSession": "kookr-8"}]
    told["again"]["status"] = "cancelled"
    told["wait"]["status"], told["done"]["status"], told["stopped"]["status"] = "pending", "completed", "terminated"
    told["gone"]["cwd"] = str(tmp_path / "nowhere")
    made = kookr_store(path, told.values())
    made.execute("UPDATE tasks SET status = 'pending' WHERE id = 'status'")
    made.execute("UPDATE tasks SET data = replace(data, '\"name\", \"prompt', '\"other\", \"prompt') WHERE id = 'name'")
    made.execute("UPDATE tasks SET is_terminal = 1 WHERE id = 'over'")
    made.execute("UPDATE tasks SET data = substr(data, 1, 40) WHERE id = 'torn'")
    made.execute("UPDATE tasks SET data = '{\"id\": \"bare\"}' WHERE id = 'bare'")
    made.execute("UPDATE task_sessions SET task_id = 'given' WHERE tmux_session = 'kookr-9'")
    made.execute("UPDATE tasks SET data = json_set(data, '$.sessions[0].tmuxSession', 'kookr-8') WHERE id = 'same'")
    made.execute("UPDATE tasks SET agent_type = 'codex' WHERE id = 'agent'")
    made.execute("UPDATE tasks SET created_at = '1999-01-01T00:00:00.000Z' WHERE id = 'made'")
    made.execute("UPDATE tasks SET is_terminal = 0 WHERE id = 'again'")
    made.execute("INSERT INTO task_quarantine VALUES (1, 'x')")
    made.commit()
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    (found,) = looking.at(tmp_path, None)
    assert found.kind == "Kookr store, schema 1"
    assert taken(found.items) == ["run", "wait"]
    run = next(item for item in found.items if item.origin == "run")
    assert (run.place, dict(run.facts)) == ("kookr-2", {"state": "inProgress", "workers": "2"})
    assert {left.origin for left in found.left if not left.over} == set(names) - {"run", "wait", "done"}
    assert "different tasks" in left(found)["name"]
    assert "is over" in left(found)["over"]
    assert "pending" in left(found)["status"]
    assert all("another task's" in left(found)[name] for name in ("shared", "given", "two", "same"))
    assert "agents" in left(found)["agent"]
    assert "moments" in left(found)["made"]
    assert "not over" in left(found)["again"]
    assert found.unread == ("table task_quarantine: 1 rows",)
    assert "tasks.sqlite-wal" in before, "what stands only in its log is read too"
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_a_store_of_kookr_keeps_its_name_when_a_torn_row_is_mended_and_says_what_it_cuts(tmp_path: Path) -> None:
    path = tmp_path / "tasks.sqlite"
    rows = [kookr_task(f"k{number}", tmp_path, status="completed") for number in range(database.ROWS + 3)]
    made = kookr_store(path, rows)
    made.execute("UPDATE tasks SET data = substr(data, 1, 40) WHERE id = 'k0'")
    made.commit()
    torn = looking.of_file(path)
    assert torn.unread == (f"table tasks: 3 of {database.ROWS + 3} rows, which are too many",)
    made.execute("UPDATE tasks SET data = ? WHERE id = 'k0'", (json.dumps(rows[0]),))
    made.commit()
    assert looking.of_file(path).name == torn.name


def test_a_terminal_of_two_tasks_of_a_file_is_neither_ones(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    one, two = (kookr_task(name, tmp_path, sessions=[{"tmuxSession": "kookr-1"}]) for name in ("one", "two"))
    path.write_text(json.dumps([one, two, kookr_task("three", tmp_path)]))
    found = looking.of_file(path)
    assert taken(found.items) == ["three"]
    assert set(left(found)) == {"one", "two"}


@pytest.mark.parametrize("version", ["2", "", None])
def test_a_store_of_kookr_of_another_schema_is_not_read(tmp_path: Path, version: str | None) -> None:
    kookr_store(tmp_path / "tasks.sqlite", [kookr_task("one", tmp_path)], version)
    found = looking.of_file(tmp_path / "tasks.sqlite")
    assert found.kind is None
    assert not found.items
    assert "schema" in found.unread[0]


def test_the_file_and_the_store_of_one_kookr_are_one_source_and_neither_is_guessed(tmp_path: Path) -> None:
    rows = [kookr_task("one", tmp_path), kookr_task("two", tmp_path)]
    kookr_store(tmp_path / ".kookr" / "tasks.sqlite", rows)
    file = tmp_path / ".kookr" / "tasks.json"
    file.write_text(json.dumps({"version": 2, "tasks": rows}))
    found = looking.at(tmp_path, None)
    assert [source.kind for source in found] == [None, None]
    assert all("name one of them" in source.unread[0] for source in found)
    store = looking.of_file(file.with_name("tasks.sqlite"))
    assert taken(store.items) == ["one", "two"]
    assert store.name == looking.of_file(file).name, "what was imported of one is not imported again of the other"


# -- other programs


def row(name: str, cwd: Path, **more: Any) -> dict[str, Any]:
    return {"id": name, "prompt": f"do {name}", "cwd": str(cwd), "status": "pending"} | more


def test_a_json_list_is_recognised_by_what_its_rows_say(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    tree = {
        "version": 3,
        "agents": [{"name": "a"}],
        "queue": [
            row("one", tmp_path, title="First"),
            row("two", tmp_path, status="In-Progress"),
            row("done", tmp_path, status="done"),
            row("sent", tmp_path, status="submitted"),
            row("odd", tmp_path, status="quux"),
            row("busy", tmp_path, in_flight={"id": 1}),
            row("gone", tmp_path / "nowhere"),
            row("both", tmp_path, goal="something else"),
            row("nul", tmp_path, prompt="a\0b"),
            row("twin", tmp_path),
            row("twin", tmp_path),
            {"prompt": "no name", "cwd": str(tmp_path), "status": "pending"},
        ],
    }
    path.write_text(json.dumps(tree))
    found = looking.of_file(path)
    assert found.kind == "JSON lists"
    assert taken(found.items) == ["one", "two"]
    assert found.items[0].title == "First"
    assert set(left(found)) == {"sent", "odd", "busy", "gone", "both", "nul", "twin", "?"}
    assert "not sent again" in left(found)["sent"]
    assert found.unread == ("list top.agents: 1 entries",)


def test_objects_by_name_and_tables_are_lists_too(tmp_path: Path) -> None:
    named = tmp_path / "named.json"
    plain = row("x", tmp_path)
    del plain["id"]
    named.write_text(json.dumps({"tasks": {"first": plain, "second": plain}}))
    assert taken(looking.of_file(named).items) == ["first", "second"]
    path = tmp_path / "tasks.db"
    with sqlite3.connect(path) as made:
        columns = "id INTEGER, instruction TEXT, working_dir TEXT, status TEXT, updated_at INTEGER"
        made.execute(f"CREATE TABLE work({columns})")
        made.execute("INSERT INTO work VALUES (1, 'do it', ?, 'working', 1763000000000)", (str(tmp_path),))
        made.execute("CREATE TABLE notes(x)")
        made.execute("INSERT INTO notes VALUES (1)")
    found = looking.of_file(path)
    assert found.kind == "SQLite tables"
    assert taken(found.items) == ["1"]
    assert found.items[0].seen_at is not None, "milliseconds are told from seconds"
    assert found.unread == ("table notes: 1 rows",)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1, 2]", b'{"a": [{"id": 1}]}', b"\xff\xfe", b"[" * 50_000, b"SQLite format 3\0" + b"x" * 500]
)
def test_what_is_not_recognised_is_said_and_nothing_is_taken(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(body)
    found = looking.of_file(path)
    assert found.kind is None
    assert not found.items
    assert found.unread


def test_a_link_is_not_followed_and_a_huge_file_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it = Registry(tmp_path)
    it.task("t1")
    (tmp_path / "link.sqlite3").symlink_to(it.path)
    assert "no ordinary file" in looking.of_file(tmp_path / "link.sqlite3").unread[0]
    monkeypatch.setattr(database, "LIMIT", 100)
    assert "larger" in it.read().unread[0]


def test_a_directory_is_searched_one_level_deep(tmp_path: Path) -> None:
    with pytest.raises(NotReadable):
        looking.at(tmp_path, None)
    with pytest.raises(NotReadable):
        looking.at(tmp_path / "nowhere", None)
    (tmp_path / ".cws").mkdir()
    Registry(tmp_path / ".cws").task("t1")
    (tmp_path / "tasks.json").write_text("{}")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "more.json").write_text("{}")
    found = looking.at(tmp_path, None)
    assert [Path(one.path).name for one in found] == ["registry.sqlite3", "tasks.json"]


def git(cwd: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@t")
    subprocess.run(["git", *who, *words], cwd=cwd, check=True, capture_output=True)


def test_worktrees_of_a_repository_become_places_once_somebody_says_what_is_to_be_done(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    git(top, "init", "-q", "-b", "main")
    git(top, "commit", "-q", "--allow-empty", "-m", "first")
    for name in ("one", "two", "lost"):
        git(top, "worktree", "add", "-q", "-b", name, str(tmp_path / name))
    git(top, "worktree", "add", "-q", "--detach", str(tmp_path / "loose"))
    git(top, "worktree", "lock", str(tmp_path / "two"))
    subprocess.run(["rm", "-r", str(tmp_path / "lost")], check=True)
    (found,) = looking.at(top, None)
    assert found.kind == "git worktrees"
    assert not found.items, "nothing says what is to be done"
    (found,) = looking.at(top, "Finish the branch.\n")
    assert {Path(item.cwd).name: item.state for item in found.items} == {"one": "open", "two": "locked"}
    assert {item.objective for item in found.items} == {"Finish the branch.\n"}
    assert {Path(each.origin).name for each in found.left} == {"top", "lost", "loose"}
