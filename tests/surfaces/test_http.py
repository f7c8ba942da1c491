"""The API: what it answers, how it fails, and what its guard lets in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest
from tests.support.api import PORT, TOKEN, Api, order
from tests.support.world import OPERATOR, World, world

from tenuto.model.change import Commit
from tenuto.model.command import Unsent
from tenuto.model.faults import Corrupt, StorageFull
from tenuto.model.snapshot import Role, Token
from tenuto.surfaces.http import guard, schema
from tenuto.surfaces.http.auth import digest_of, operator_token
from tenuto.surfaces.present import instant
from tenuto.surfaces.routes import PREFIX, ROUTES
from tenuto.surfaces.verbs import VERBS

pytestmark = pytest.mark.anyio

PLACES = [
    (route.method, PREFIX + path.replace("{task}", "t-zzzz").replace("{run}", "r-zzzz").replace("{command}", "c-zzzz"))
    for route in ROUTES.values()
    for path in (route.path, route.run_path)
    if path is not None
] + [("POST", "/mcp"), ("GET", f"{PREFIX}/openapi.json"), ("GET", "/nowhere"), ("DELETE", f"{PREFIX}/status")]


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


@pytest.fixture
async def api(it: World) -> AsyncIterator[Api]:
    made = Api(it)
    async with made.client:
        yield made


def failed(response: httpx2.Response, status: int, code: str, field: str | None = None) -> dict[str, Any]:
    """The one shape, and nothing beside it."""
    assert response.status_code == status, response.text
    said = response.json()
    jsonschema.validate(said, schema.ERROR)
    assert said["error"]["code"] == code
    assert said["error"].get("field") == field
    assert TOKEN not in response.text
    assert response.headers["content-type"] == "application/json"
    return dict(said["error"])


# -- answers


async def test_work_is_made_once_however_often_it_is_asked_for(api: Api, it: World) -> None:
    first = await api.post("/runs", order(it), key="make")
    again = await api.post("/runs", order(it), key="make")
    assert (first.status_code, again.status_code) == (201, 200)
    assert "idempotent-replay" not in first.headers
    assert again.headers["idempotent-replay"] == "true"
    assert first.json()["result"] == again.json()["result"]
    failed(await api.post("/runs", order(it, title="Other"), key="make"), 409, "conflict", "Idempotency-Key")
    assert len((await api.get("/tasks")).json()["tasks"]) == 1


async def test_a_verb_that_has_nothing_to_do_says_so(api: Api, it: World) -> None:
    task = await it.create()
    assert (await api.post(f"/tasks/{task}/pause")).status_code == 201
    same = await api.post(f"/tasks/{task}/pause")
    assert same.status_code == 200
    assert "it was so already" in same.json()["text"]
    assert "idempotent-replay" not in same.headers


async def test_a_run_is_taken_as_a_whole(api: Api, it: World) -> None:
    task = await it.create()
    run = it.desk.task(task).run_id
    assert (await api.post(f"/runs/{run}/pause")).json()["effects"][0]["task"] == task
    assert (await api.post(f"/runs/{run[2:]}/resume")).status_code == 201
    assert (await api.get(f"/runs/{run}/policy")).status_code == 200
    told = await api.post(f"/runs/{run}/policy", {"changes": {"idle-delay": 5}}, method="PUT")
    assert told.status_code == 201
    failed(await api.post(f"/runs/{task}/pause"), 404, "not_found", "run")
    assert (await api.post(f"/runs/{run}/cancel", {"reason": "enough"})).status_code == 201


async def test_reading_takes_words_for_numbers_and_truths(api: Api, it: World) -> None:
    task = await it.started()
    assert len((await api.get("/events", limit="2", after="0", task=task)).json()["events"]) == 2
    last = (await api.get("/events", limit="1000")).json()["last"]
    assert (await api.get("/events", after=f"1-{last}")).json() == {"events": [], "last": last}
    assert (await api.get("/tasks", unfinished="true")).json()["tasks"][0]["id"] == task
    told = await api.get(f"/tasks/{task}/explain", at=instant(it.clock.now()))
    assert told.json()["recorded"]


async def test_healthz_needs_nothing_and_tells_nothing(api: Api) -> None:
    told = await api.client.get("/healthz")
    assert (told.status_code, told.json()) == (200, {"ok": True})


# -- failures


async def test_every_failure_has_the_one_shape(api: Api, it: World, monkeypatch: pytest.MonkeyPatch) -> None:
    task = await it.create()
    failed(await api.get("/tasks/t-zzzzzzzz"), 404, "not_found", "task")
    failed(await api.get("/nowhere"), 404, "not_found")
    wrong = await api.client.delete(f"{PREFIX}/status", headers=api.headers())
    failed(wrong, 405, "no_such_method")
    assert "GET" in wrong.headers["allow"]
    several = await api.client.delete(f"{PREFIX}/runs", headers=api.headers())
    assert {"GET", "POST"} <= set(several.headers["allow"].split(", "))
    failed(await api.get("/events", limit="many"), 422, "mistake", "limit")
    failed(await api.get("/status", colour="blue"), 422, "mistake", "colour")
    twice = await api.client.get(f"{PREFIX}/events?limit=1&limit=2", headers=api.headers())
    failed(twice, 422, "mistake", "limit")
    failed(await api.post("/runs", order(it, agent={"argv": []})), 422, "mistake", "agent.argv")
    failed(await api.post(f"/tasks/{task}/pause", {"task": task}), 422, "mistake", "task")
    failed(await api.post(f"/tasks/{task}/continue", {"anyway": "yes"}), 422, "mistake", "anyway")
    it.executor.objecting = ("cwd", "there is no such directory")
    failed(await api.post("/runs", order(it)), 422, "mistake", "cwd")
    await api.post(f"/tasks/{task}/cancel")
    because = failed(await api.post(f"/tasks/{task}/pause"), 423, "refused")
    assert because["because"] == because["message"] == "the task is cancelled"
    assert because["see"]

    async def full(_commit: Commit) -> None:
        raise StorageFull("/a/secret/path has no room")

    monkeypatch.setattr(it.ledger, "commit", full)
    it.executor.objecting = None
    told = failed(await api.post("/runs", order(it)), 507, "storage_full")
    assert "secret" not in told["message"]


async def test_a_fault_of_ours_is_told_without_its_details(
    api: Api, it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("inner words")

    monkeypatch.setattr(it.desk, "attention", broken)
    told = await api.get("/attention")
    assert failed(told, 500, "fault")["message"]
    assert "inner words" not in told.text

    def corrupt() -> None:
        raise Corrupt("the registry is damaged; restore a backup")

    monkeypatch.setattr(it.desk, "attention", corrupt)
    failed(await api.get("/attention"), 500, "corrupt")


async def test_without_a_leader_reading_goes_on(tmp_path: Path) -> None:
    async with world(tmp_path) as first:
        task = await first.create()
    async with world(tmp_path, led=False) as it, Api(it).client as client:
        headers = {"Authorization": f"Bearer {TOKEN}", "Idempotency-Key": "k"}
        assert (await client.get(f"{PREFIX}/tasks/{task}", headers=headers)).status_code == 200
        none = await client.post(f"{PREFIX}/tasks/{task}/pause", headers=headers)
        failed(none, 503, "no_supervisor")
        assert none.headers["retry-after"]


@pytest.mark.parametrize(
    "raw",
    [b"{", b"[]", b'"x"', b"\xff\xfe", b'{"a":1,"a":2}', b'{"a":NaN}', b"[" * 100_000, b"null"],
    ids=lambda raw: repr(raw[:8]),
)
async def test_a_body_that_is_no_object_is_a_mistake(api: Api, raw: bytes) -> None:
    headers = api.headers("k") | {"Content-Type": "application/json"}
    failed(await api.client.post(f"{PREFIX}/hold", content=raw, headers=headers), 422, "mistake", "body")


async def test_a_changing_request_carries_a_key(api: Api) -> None:
    for method, path in PLACES:
        if method in ("POST", "PUT") and path != "/mcp":
            bare = await api.client.request(method, path, headers=api.headers())
            failed(bare, 422, "mistake", "Idempotency-Key")
    for key in ("x" * 201, "", "a b", "\x7f"):
        wrong = await api.client.post(f"{PREFIX}/hold", headers=api.headers(key))
        failed(wrong, 422, "mistake", "Idempotency-Key")
    failed(await api.post("/hold?force=1"), 422, "mistake", "query")


# -- the guard


@pytest.mark.parametrize(("method", "path"), PLACES)
async def test_nothing_is_open(api: Api, method: str, path: str) -> None:
    request = api.client.request
    good = api.headers("k")
    bare = await request(method, path, headers={"Idempotency-Key": "k"})
    failed(bare, 401, "not_allowed")
    assert bare.headers["www-authenticate"] == "Bearer"
    for token in ("", "x", f"{TOKEN} ", "Basic abc", f"Bearer {TOKEN[:-1]}", "Bearer é"):
        headers = {b"Authorization": token.encode("utf-8")}
        failed(await request(method, path, headers=headers), 401, "not_allowed")
    failed(await request(method, path, headers=good | {"Host": "evil.example"}), 403, "not_allowed")
    failed(await request(method, path, headers=good | {"Host": f"localhost:{PORT}"}), 403, "not_allowed")
    for origin in ("https://evil.example", "null", "http://tenuto", ""):
        failed(await request(method, path, headers=good | {"Origin": origin}), 403, "not_allowed")
    large = good | {"Content-Type": "application/json", "Content-Length": str(guard.BODY_BYTES + 1)}
    failed(await request(method, path, headers=large), 413, "too_large")
    for kind in ("text/plain", "application/x-www-form-urlencoded", "", "application/json; charset=latin-1"):
        wrong = await request(method, path, content=b"{}", headers=good | {"Content-Type": kind})
        failed(wrong, 415, "unsupported_media")


async def test_a_body_without_a_length_is_bounded_too(api: Api) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(2 * guard.BODY_BYTES // 65536):
            yield b" " * 65536

    headers = api.headers("k") | {"Content-Type": "application/json"}
    failed(await api.client.post(f"{PREFIX}/hold", content=endless(), headers=headers), 413, "too_large")


async def test_the_largest_objective_fits_however_it_is_written(api: Api) -> None:
    body = order(api.world, objective="\x01" * (256 * 1024))
    told = await api.post("/runs", body)
    assert told.status_code == 201, told.text
    failed(await api.post("/runs", body | {"objective": "\x01" * (256 * 1024 + 1)}), 422, "mistake", "objective")


async def test_headers_that_are_given_twice_are_refused(api: Api) -> None:
    for name in ("Host", "Origin", "Authorization"):
        headers = [(name, "tenuto"), (name, "tenuto"), *api.headers().items()]
        failed(await api.client.get(f"{PREFIX}/status", headers=headers), 400, "bad_request")


async def test_a_loopback_port_takes_its_own_names_only(api: Api) -> None:
    transport = httpx2.ASGITransport(app=api.app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}") as client:
        for host in (f"localhost:{PORT}", f"127.0.0.1:{PORT}", f"[::1]:{PORT}", f"LOCALHOST:{PORT}"):
            headers = api.headers() | {"Host": host, "Origin": f"http://localhost:{PORT}"}
            told = await client.get(f"{PREFIX}/status", headers=headers)
            assert told.status_code == 200, host
            assert not [name for name in told.headers if name.startswith("access-control")]
        for host in ("tenuto", "localhost", "localhost:80", f"localhost.evil.example:{PORT}", f"127.0.0.1:{PORT}.x"):
            failed(await client.get(f"{PREFIX}/status", headers=api.headers() | {"Host": host}), 403, "not_allowed")
        for origin in ("http://localhost:1", f"https://localhost:{PORT}", f"http://evil.example:{PORT}"):
            refused = await client.get(f"{PREFIX}/status", headers=api.headers() | {"Origin": origin})
            failed(refused, 403, "not_allowed")


async def test_a_socket_that_may_not_come_in_is_closed(api: Api) -> None:
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    scope = {"type": "websocket", "path": "/executor", "headers": [(b"host", b"tenuto")], "server": ("/s", None)}
    await api.app(scope, receive, send)
    assert [(one["type"], one["code"]) for one in said] == [("websocket.close", 1008)]


async def test_a_body_that_does_not_come_is_not_waited_for_long(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_WITHIN", 0.01)

    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    headers = api.headers("k") | {"Content-Type": "application/json"}
    failed(await api.client.post(f"{PREFIX}/hold", content=slow(), headers=headers), 408, "too_slow")


# -- agents


async def test_an_agent_reaches_its_own_task(api: Api, it: World) -> None:
    task, other = await it.started(), await it.create()
    api.token = it.agent_token()
    assert (await api.get(f"/tasks/{task}")).status_code == 200
    lines = [{"name": "completed", "value": "all"}]
    assert (await api.post(f"/tasks/{task}/report", {"lines": lines})).status_code == 201
    failed(await api.get(f"/tasks/{other}"), 403, "not_allowed", "task")
    failed(await api.get("/status"), 403, "not_allowed")
    failed(await api.post("/stop"), 403, "not_allowed")
    for method, path in PLACES:
        told = await api.client.request(method, path, headers=api.headers("k"))
        if path == "/mcp":  # its own tools hold an agent to its task: tests/surfaces/test_mcp.py
            continue
        open_to_agents = path.endswith(("openapi.json", "/whoami"))
        assert told.status_code in (403, 404, 405, 422) or open_to_agents, (method, path, told.text)
    claimed = await api.post(f"/tasks/{task}/complete", {"evidence": "commit abc"}, key="c")
    assert claimed.status_code == 201
    again = await api.post(f"/tasks/{task}/complete", {"evidence": "commit abc"}, key="c")
    assert (again.status_code, again.headers["idempotent-replay"]) == (200, "true")


async def test_a_revoked_token_and_an_executors_open_nothing(api: Api, it: World) -> None:
    task = await it.started()
    api.token = it.agent_token()
    token = it.ledger.token(digest_of(api.token))
    assert token is not None
    await it.ledger.commit(Commit(puts=(replace(token, revision=2, revoked_at=it.clock.now()),)))
    failed(await api.get(f"/tasks/{task}"), 401, "not_allowed")
    api.token = "an-executors-token-that-is-long-enough-too"
    made = Token(it.minter.new("token"), 1, digest_of(api.token), Role.EXECUTOR, None, None, it.clock.now())  # type: ignore[arg-type]
    await it.ledger.commit(Commit(puts=(made,)))
    failed(await api.get(f"/tasks/{task}"), 403, "not_allowed")


# -- the operator's token


def test_the_operators_token_is_made_once_and_kept_private(tmp_path: Path) -> None:
    path = tmp_path / "state" / "operator.token"
    secrets = iter(["a" * 43, "b" * 43])
    assert operator_token(path, lambda: next(secrets)) == "a" * 43
    assert operator_token(path, lambda: next(secrets)) == "a" * 43
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["operator.token"]


@pytest.mark.parametrize("harm", ["open", "short", "link", "folder"])
def test_a_token_file_that_others_may_have_touched_is_refused(tmp_path: Path, harm: str) -> None:
    path = tmp_path / "operator.token"
    if harm == "folder":
        path.mkdir(mode=0o700)
    elif harm == "link":
        (tmp_path / "elsewhere").write_text("a" * 43)
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.write_text("a" * 43 if harm == "open" else "a")
        path.chmod(0o644 if harm == "open" else 0o600)
    with pytest.raises(Exception, match=str(path)):
        operator_token(path, lambda: "b" * 43)


# -- the description


async def test_the_description_is_whole(api: Api) -> None:
    document = (await api.get("/openapi.json")).json()
    told = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    served = {
        (route.method, PREFIX + path) for route in ROUTES.values() for path in (route.path, route.run_path) if path
    }
    assert told == served | {("GET", "/healthz")}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            assert {"200", "400", "403", "413"} <= set(operation["responses"]), (path, method)
    names = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(names) == len(set(names))
    reading = {name for name, verb in VERBS.items() if not verb.mutates}
    assert set(schema.TELLS) == reading
    jsonschema.Draft202012Validator.check_schema(document["components"]["schemas"]["Done"])


async def test_answers_are_as_described(api: Api, it: World) -> None:
    it.executor.outcome = lambda: Unsent("not now")
    task = await it.create()
    await it.settle(task)
    (command, *_) = it.desk.commands(task_id=task)
    places = {"task": task, "run": it.desk.task(task).run_id, "command": command.id}
    for name, verb in VERBS.items():
        if not verb.mutates and "{chain}" not in verb.route.path and name not in ("chain.unit", "session.list"):
            said = (await api.get(verb.route.path.format(**places))).json()
            assert set(schema.TELLS[name]) <= set(said), name
    said = (await api.post(f"/tasks/{task}/pause")).json()
    jsonschema.validate(said, schema.DONE)


# -- the feed


class Reader:
    """Reads a feed as it comes, without anything listening: the application is called, and what it sends is kept."""

    def __init__(self, api: Api, **headers: str) -> None:
        self.api = api
        self.headers = api.headers() | {"Accept": "text/event-stream", "Host": "tenuto"} | headers
        self.status = 0
        self.text = ""
        self.came = asyncio.Event()
        self.left = asyncio.Event()

    async def run(self, query: str = "") -> None:
        first = True

        async def receive() -> dict[str, Any]:
            nonlocal first
            if first:
                first = False
                return {"type": "http.request", "body": b"", "more_body": False}
            await self.left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            self.status = message.get("status", self.status)
            self.text += message.get("body", b"").decode()
            self.came.set()

        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": f"{PREFIX}/events",
            "raw_path": b"",
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in self.headers.items()],
            "server": ("/run/api.sock", None),
            "client": None,
        }
        await self.api.app(scope, receive, send)

    async def until(self, part: str) -> None:
        async with asyncio.timeout(60):
            while part not in self.text:
                self.came.clear()
                await self.came.wait()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line[6:]) for line in self.text.splitlines() if line.startswith("data: ")]


async def test_the_feed_goes_on_where_it_stopped(api: Api, it: World) -> None:
    task = await it.create()
    first = Reader(api)
    async with asyncio.TaskGroup() as group:
        group.create_task(first.run("after=0"))
        await first.until("task.created")
        await it.desk.say(OPERATOR, task, "hello")
        api.feed.notify()
        await first.until("message.stored")
        await first.until(": still here")
        first.left.set()
    known = first.events[-1]["id"]
    await it.desk.say(OPERATOR, task, "again")
    second = Reader(api, **{"Last-Event-ID": known})
    async with asyncio.TaskGroup() as group:
        group.create_task(second.run())
        await second.until("message.stored")
        api.feed.close()
    assert [one["n"] for one in first.events] == sorted(one["n"] for one in first.events)
    assert second.events[0]["n"] > first.events[-1]["n"]
    assert {one["id"] for one in first.events}.isdisjoint(one["id"] for one in second.events)


async def test_a_feed_without_a_place_starts_now_and_one_of_another_registry_too(api: Api, it: World) -> None:
    task = await it.create()
    fresh, foreign = Reader(api), Reader(api, **{"Last-Event-ID": "9-999999"})
    async with asyncio.TaskGroup() as group:
        group.create_task(fresh.run())
        group.create_task(foreign.run(f"task={task}"))
        await fresh.until(": open")
        await foreign.until(": open")
        await it.desk.say(OPERATOR, task, "hello")
        api.feed.notify()
        await fresh.until("message.stored")
        await foreign.until("message.stored")
        api.feed.close()
    assert "run.created" not in fresh.text + foreign.text
    failed(
        await api.client.get(f"{PREFIX}/events", headers=fresh.headers | {"Last-Event-ID": "x"}),
        422,
        "mistake",
        "after",
    )


async def test_feeds_are_bounded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenuto.surfaces.http.feed.STREAMS", 0)
    told = await api.client.get(f"{PREFIX}/events", headers=api.headers() | {"Accept": "text/event-stream"})
    failed(told, 429, "busy")
    assert told.headers["retry-after"]
