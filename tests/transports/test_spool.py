"""The spool: words are whole or not there, sealed, believed only when proven, and heard once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.world import NOW, OPERATOR, World, world

from tenuto.engine.desk import Caller
from tenuto.engine.spooled import Heard, Spooled
from tenuto.model.fact import FactKind
from tenuto.model.faults import Mistake, NoSupervisor, StorageFull
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import TaskState
from tenuto.ports import Unreadable, Word
from tenuto.surfaces import verbs
from tenuto.transports import spool

pytestmark = pytest.mark.anyio
TOKEN = "an-agents-token-that-is-long-enough-for-one"
TASK = "t-00000000000000000000000000"


def put(
    place: Path, number: int = 0, *, verb: str = "task.report", token: str = TOKEN, task: str = TASK, **params: Any
) -> Path:
    return spool.put(
        place, verb=verb, params=params, key=f"k{number}", token=token, task=task, at=NOW + timedelta(seconds=number)
    )


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path / "w") as made:
        yield made


def hearing(it: World, place: Path, **more: float) -> Spooled:
    async def say(caller: Caller, verb: str, params: Mapping[str, object], key: str) -> object:
        return await verbs.spooled(it.desk, caller, verb, params, key)

    return Spooled(spool.SpoolFolder(place), it.ledger, say, **more)


def findings(it: World) -> list[str]:
    return [str(event.fact.data["what"]) for event in it.ledger.events(0, 1000) if event.fact.kind is FactKind.FINDING]


def left(place: Path) -> list[str]:
    return sorted(one.name for one in place.iterdir() if one.is_file())


# -- the folder


def test_a_word_is_private_and_holds_neither_token_nor_digest(tmp_path: Path) -> None:
    place = tmp_path / "spool"
    path = put(place, task=TASK, lines=[])
    assert path.stat().st_mode & 0o777 == 0o600
    assert place.stat().st_mode & 0o777 == 0o700
    assert left(place) == [path.name]
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    text = path.read_text()
    assert TOKEN not in text
    assert digest not in text
    assert digest[:16] in text


def test_words_come_back_in_order_and_only_their_token_proves_them(tmp_path: Path) -> None:
    for number in (3, 1, 2):
        put(tmp_path, number, n=number)
    folder = spool.SpoolFolder(tmp_path)
    words = folder.waiting(10)
    assert [word.key for word in words if isinstance(word, Word)] == ["k1", "k2", "k3"]
    assert [word.key for word in folder.waiting(2) if isinstance(word, Word)] == ["k1", "k2"]
    (word, *_) = words
    assert isinstance(word, Word)
    assert word.at == NOW + timedelta(seconds=1)
    assert folder.genuine(word, hashlib.sha256(TOKEN.encode()).hexdigest())
    assert not folder.genuine(word, hashlib.sha256(b"another").hexdigest())
    assert not folder.genuine(word, word.hint + "0" * 48)


def test_a_word_that_was_altered_is_not_genuine(tmp_path: Path) -> None:
    path = put(tmp_path, reason="tired", verb="task.fail")
    sealed = json.loads(path.read_text())
    sealed["body"] = sealed["body"].replace("tired", "bored")
    path.write_text(json.dumps(sealed))
    (word,) = spool.SpoolFolder(tmp_path).waiting(10)
    assert isinstance(word, Word)
    assert word.params == {"reason": "bored"}
    assert not spool.SpoolFolder(tmp_path).genuine(word, hashlib.sha256(TOKEN.encode()).hexdigest())


BODY = {"verb": "task.fail", "params": {}, "key": "k", "task": TASK, "at": "2026-03-01T12:00:00Z"}
WRONG: list[dict[str, object]] = [
    {"at": "noon"},
    {"at": "2026-03-01T12:00:00"},
    {"at": 5},
    {"key": ""},
    {"key": "x" * 201},
    {"task": "t-x"},
    {"task": "../x"},
    {"params": []},
    {"verb": None},
]
SEALED = {"form": "tenuto-spool/1", "hint": "0" * 16, "seal": "0" * 64, "body": json.dumps(BODY)}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"x" * (spool.BYTES + 1),
        json.dumps(SEALED | {"form": "tenuto-spool/2"}),
        json.dumps(SEALED | {"hint": "short"}),
        json.dumps(SEALED | {"seal": "é" * 64}),
        json.dumps(SEALED | {"body": {}}),
        json.dumps({"form": "tenuto-spool/1"}),
        *(json.dumps(SEALED | {"body": json.dumps(BODY | wrong)}) for wrong in WRONG),
    ],
    ids=lambda content: repr(content[-90:])[:60],
)  # fmt: skip
def test_what_is_no_word_is_unreadable(tmp_path: Path, content: bytes | str) -> None:
    path = tmp_path / "1.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(0o600)
    (found,) = spool.SpoolFolder(tmp_path).waiting(10)
    assert isinstance(found, Unreadable), found


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "open", "missing"])
def test_what_is_no_plain_private_file_is_not_read(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "spool"
    real = put(place)
    content = real.read_bytes()
    real.unlink()
    path = place / "1.json"
    match kind:
        case "link":
            (tmp_path / "real").write_bytes(content)
            path.symlink_to(tmp_path / "real")
        case "folder":
            path.mkdir(mode=0o700)
        case "pipe":
            os.mkfifo(path, 0o600)
        case "missing":
            path.symlink_to(tmp_path / "nowhere")
        case _:
            path.write_bytes(content)
            path.chmod(0o644)
    (found,) = spool.SpoolFolder(place).waiting(10)
    assert isinstance(found, Unreadable), found


def test_a_spool_has_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Mistake):
        put(tmp_path, text="x" * spool.BYTES)
    monkeypatch.setattr(spool, "FILES", 2)
    put(tmp_path, 1)
    put(tmp_path, 2)
    with pytest.raises(StorageFull):
        put(tmp_path, 3)
    assert len(left(tmp_path)) == 2
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFull):
        put(tmp_path / "file")


def test_only_the_newest_refused_words_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "REFUSED_KEPT", 2)
    folder = spool.SpoolFolder(tmp_path)
    for number in range(4):
        folder.refuse(put(tmp_path, number).name, f"reason {number}")
    kept = left(tmp_path / spool.REFUSED)
    assert len(kept) == 4
    assert [(tmp_path / spool.REFUSED / name).read_text() for name in kept if name.endswith("reason")] == [
        "reason 2\n",
        "reason 3\n",
    ]


# -- hearing


async def test_a_word_that_was_left_is_heard_once(it: World, tmp_path: Path) -> None:
    task = await it.started()
    said: dict[str, Any] = {"task": task, "evidence": "commit abc", "summary": "done"}
    put(tmp_path / "s", verb="task.complete", token=it.agent_token(), **said)
    spooled = hearing(it, tmp_path / "s")
    assert await spooled.hear() == Heard(said=1)
    assert left(tmp_path / "s") == []
    claim = it.desk.task(task).claim
    assert it.desk.task(task).state is TaskState.COMPLETED or (claim is not None and claim.evidence == "commit abc")
    before = it.ledger.last_event()
    put(tmp_path / "s", verb="task.complete", token=it.agent_token(), **said)
    assert await spooled.hear() == Heard(said=1)
    assert it.ledger.last_event() == before
    assert findings(it) == []


async def test_what_is_not_believed_is_put_aside_with_its_reason(it: World, tmp_path: Path) -> None:
    task, place = await it.started(), tmp_path / "s"
    token = it.agent_token()
    lines = [{"name": "completed", "value": "all"}]
    put(place, 1, token="somebody-elses-token-that-is-long-enough", task=task, lines=lines)
    other = await it.create()
    put(place, 2, token=token, task=other, lines=lines)
    put(place, 3, token=token, task=task, verb="task.cancel")
    put(place, 4, token=token, task=task, lines=[])
    (place / "5.json").write_text("{}")
    put(place, 6, token=token, task=task, verb="task.report", lines=lines)
    put(place, 7, token=token, task=other, verb="task.report", lines=lines)
    assert await hearing(it, place).hear() == Heard(said=1, refused=6)
    assert left(place) == []
    assert len(left(place / spool.REFUSED)) == 12
    assert len(findings(it)) == 6
    assert len(it.desk.reports(task)) == 1
    assert it.desk.task(task).state is TaskState.ACTIVE


async def test_a_late_word_is_refused(it: World, tmp_path: Path) -> None:
    task, place = await it.started(), tmp_path / "s"
    await it.desk.cancel(OPERATOR, task)
    put(place, verb="task.complete", token=it.agent_token(), task=task, evidence="commit abc")
    assert await hearing(it, place).hear() == Heard(refused=1)
    assert it.desk.task(task).state is TaskState.CANCELLED
    assert "too late" in findings(it)[0]


@pytest.mark.parametrize("fault", [NoSupervisor("nobody"), StorageFull("no room")], ids=["no leader", "no room"])
async def test_what_cannot_be_heard_yet_is_left(it: World, tmp_path: Path, fault: Exception) -> None:
    task, place = await it.started(), tmp_path / "s"
    put(place, token=it.agent_token(), task=task, lines=[])

    async def say(*_: object) -> object:
        raise fault

    spooled = Spooled(spool.SpoolFolder(place), it.ledger, say)
    assert await spooled.hear() == Heard()
    assert len(left(place)) == 1


async def test_a_word_that_trips_us_does_not_stop_the_rest(it: World, tmp_path: Path) -> None:
    task, place = await it.started(), tmp_path / "s"
    put(place, 1, token=it.agent_token(), task=task)
    put(place, 2, token=it.agent_token(), task=task)
    heard: list[str] = []

    async def say(_caller: Caller, _verb: str, _params: Mapping[str, object], key: str) -> object:
        if key == "k1":
            raise RuntimeError("inner words")
        heard.append(key)
        return None

    assert await Spooled(spool.SpoolFolder(place), it.ledger, say).hear() == Heard(said=1, refused=1)
    assert heard == ["k2"]
    assert "inner words" not in findings(it)[0]


async def test_a_word_is_noticed_while_it_runs(it: World, tmp_path: Path) -> None:
    task, place = await it.started(), tmp_path / "s"
    lines = [{"name": "completed", "value": "all"}]
    put(place, 1, token=it.agent_token(), task=task, lines=lines)
    spooled = hearing(it, place, every=0.01)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(spooled.run())
        await _reports(it, task, 1)
        put(place, 2, token=it.agent_token(), task=task, lines=lines)
        await _reports(it, task, 2)
        spooled.stop()


async def _reports(it: World, task: TaskId, wanted: int) -> None:
    while len(it.desk.reports(task)) < wanted:  # noqa: ASYNC110 - another task makes it, bounded by the caller
        await asyncio.sleep(0.005)
