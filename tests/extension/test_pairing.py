"""Pairing: a code opens once, an origin by itself opens nothing, and a panel's token is held to its verbs."""

from __future__ import annotations

import stat
from pathlib import Path

import httpx2
import pytest
from tests.support.api import PORT, TOKEN
from tests.support.world import OPERATOR, World, world

from tenuto.surfaces.http.app import make_app
from tenuto.surfaces.http.auth import Authenticator
from tenuto.surfaces.http.feed import Feed, Pace
from tenuto.surfaces.http.pairing import GUESSES, LIFE, Codes, Paired

ORIGIN = "moz-extension://5a4f0c4e-7c1d-4e1b-9a68-1f6d3f0e7a11"
OTHER = "chrome-extension://abcdefghijklmnopabcdefghijklmnop"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def codes(clock: Clock) -> Codes:
    made = iter(f"secret number {number}" for number in range(100))
    return Codes(clock, lambda: next(made))


def test_a_code_opens_once_and_for_its_name() -> None:
    it = codes(Clock())
    code = it.code(OPERATOR, "browser")
    assert len(code) == 9
    assert code[4] == "-"
    assert it.redeem(code) == (OPERATOR, "browser")
    assert it.redeem(code) is None


def test_a_code_runs_out() -> None:
    clock = Clock()
    it = codes(clock)
    code = it.code(OPERATOR, "browser")
    clock.now += LIFE + 1
    assert it.redeem(code) is None


def test_a_few_wrong_guesses_void_every_code() -> None:
    it = codes(Clock())
    code = it.code(OPERATOR, "browser")
    for number in range(GUESSES):
        assert it.redeem(f"no-{number}") is None
    assert it.redeem(code) is None


def test_what_was_paired_is_known_to_the_next_supervisor_and_is_its_owners_alone(tmp_path: Path) -> None:
    place = tmp_path / "extensions.json"
    it = Paired(place)
    assert not it.known(ORIGIN)
    it.remember("browser", ORIGIN)
    again = Paired(place)
    assert again.known(ORIGIN)
    assert again.origin_of("browser") == ORIGIN
    assert again.origin_of("other") is None
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "nothing", "[]", '{"browser": 3}', '{"browser": "https://evil.example"}'])
def test_a_damaged_file_pairs_nobody(tmp_path: Path, text: str) -> None:
    place = tmp_path / "extensions.json"
    place.write_text(text, "utf-8")
    assert not Paired(place).known("https://evil.example")
    assert Paired(place).origin_of("browser") is None


async def paired_app(it: World, tmp_path: Path) -> tuple[httpx2.AsyncClient, Paired]:
    paired = Paired(tmp_path / "extensions.json")
    auth = Authenticator(TOKEN, it.ledger.token, now=it.clock.now)
    pace = Pace(look=0.01, comment=0.05)
    app = make_app(it.desk, auth, feed=Feed(pace), port=PORT, paired=paired, codes=codes(Clock()))
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}"), paired


async def code_for(client: httpx2.AsyncClient, name: str = "browser") -> str:
    answer = await client.post("/extension/code", json={"name": name}, headers={"Authorization": f"Bearer {TOKEN}"})
    return str(answer.json()["code"]).partition("-")[2]


@pytest.mark.anyio
async def test_a_code_becomes_a_token_that_opens_the_panels_verbs_from_its_own_origin_only(tmp_path: Path) -> None:
    async with world(tmp_path / "w") as it:
        client, _ = await paired_app(it, tmp_path)
        async with client:
            code = await code_for(client)
            answer = await client.post("/extension/pair", json={"code": code}, headers={"Origin": ORIGIN})
            assert answer.status_code == 200, answer.text
            bearer = {"Authorization": f"Bearer {answer.json()['token']}"}
            mine, other = {**bearer, "Origin": ORIGIN}, {**bearer, "Origin": OTHER}
            assert (await client.get("/api/v1/status", headers=mine)).status_code == 200
            assert (await client.get("/api/v1/status", headers=other)).status_code == 403
            held = await client.post("/api/v1/hold", json={}, headers={**mine, "Idempotency-Key": "k-1"})
            assert held.status_code in (200, 201)
            assert it.ledger.registry().held_by == "panel of browser"
            # Without an origin it reads and changes nothing; and no token opens what is not the panel's.
            changed = await client.post("/api/v1/hold", json={}, headers={**bearer, "Idempotency-Key": "k-2"})
            assert changed.status_code == 403
            lifted = await client.post("/api/v1/unhold", json={}, headers={**mine, "Idempotency-Key": "k-3"})
            assert lifted.status_code == 403
            made = {"objective": "x", "cwd": "/", "agent": {"argv": ["true"]}}
            run = await client.post("/api/v1/runs", json=made, headers={**mine, "Idempotency-Key": "k-4"})
            assert run.status_code == 403


@pytest.mark.anyio
async def test_pairing_anew_takes_the_earlier_token_back(tmp_path: Path) -> None:
    async with world(tmp_path / "w") as it:
        client, paired = await paired_app(it, tmp_path)
        async with client:
            first = await client.post(
                "/extension/pair", json={"code": await code_for(client)}, headers={"Origin": ORIGIN}
            )
            second = await client.post(
                "/extension/pair", json={"code": await code_for(client)}, headers={"Origin": OTHER}
            )
            assert second.status_code == 200
            assert paired.origin_of("browser") == OTHER
            old = {"Authorization": f"Bearer {first.json()['token']}", "Origin": OTHER}
            assert (await client.get("/api/v1/status", headers=old)).status_code == 401


@pytest.mark.anyio
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:6174", "moz-extension://x", None])
async def test_only_an_extension_is_paired(tmp_path: Path, origin: str | None) -> None:
    async with world(tmp_path / "w") as it:
        client, paired = await paired_app(it, tmp_path)
        async with client:
            code = await code_for(client)
            headers = {"Origin": origin} if origin is not None else {}
            answer = await client.post("/extension/pair", json={"code": code}, headers=headers)
            assert answer.status_code == 403
            assert not paired.known(origin or "")
            assert [token for token in it.ledger.named_tokens() if token.name == "browser"] == []


@pytest.mark.anyio
async def test_an_executors_token_asks_for_no_code(tmp_path: Path) -> None:
    async with world(tmp_path / "w") as it:
        client, _ = await paired_app(it, tmp_path)
        async with client:
            code = await code_for(client)
            answer = await client.post("/extension/pair", json={"code": code}, headers={"Origin": ORIGIN})
            headers = {"Authorization": f"Bearer {answer.json()['token']}"}
            asked = await client.post("/extension/code", json={"name": "another"}, headers=headers)
            assert asked.status_code == 403
