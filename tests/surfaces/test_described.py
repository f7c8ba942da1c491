"""The API does what its description says, whatever it is sent: no fault of ours, and no answer that is not described.

Requests are made from the description by schemathesis, some about things that are there, and sent to a served port.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.support.api import TOKEN
from tests.support.world import World, world

from tenuto.surfaces.http import schema
from tenuto.surfaces.http.app import make_app
from tenuto.surfaces.http.auth import Authenticator
from tenuto.surfaces.http.door import Door
from tenuto.surfaces.http.feed import Feed

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
DESCRIBED = schemathesis.openapi.from_dict(schema.document())
OPERATIONS: list[Any] = [found.ok() for found in DESCRIBED.get_all_operations()]  # type: ignore[union-attr]


@dataclass
class Served:
    """A served world: where it is, and names of things that are there."""

    base: str
    known: dict[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder, place = tmp_path_factory.mktemp("world"), tmp_path_factory.mktemp("d") / "s" / "a.sock"
    up, doors, found = threading.Event(), [], []

    async def serve() -> None:
        async with world(folder) as it:
            found.append(await things(it))
            feed, auth = Feed(), Authenticator(TOKEN, it.ledger.token)
            door = Door(place, lambda port: make_app(it.desk, auth, feed=feed, port=port), port=0, closing=feed.close)
            door.open()
            doors.append((door, asyncio.get_running_loop()))
            up.set()
            await door.serve()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert up.wait(60)
        yield Served(f"http://127.0.0.1:{doors[0][0].port}", found[0])
    finally:
        if doors:
            door, loop = doors[0]
            loop.call_soon_threadsafe(door.stop)
        thread.join(60)


async def things(it: World) -> dict[str, str]:
    """A doubted command with its task and run."""
    task, command = await it.doubted()
    return {"task": task, "command": command, "run": it.desk.task(task).run_id}


def test_every_address_is_described() -> None:
    assert len(OPERATIONS) >= 40


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_it_answers_as_described(served: Served, operation: Any) -> None:
    @settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
    @given(case=operation.as_strategy(), there=st.booleans())
    def answers(case: Any, there: bool) -> None:
        if there and case.path_parameters:
            for name in case.path_parameters:
                case.path_parameters[name] = served.known.get(name, case.path_parameters[name])
        headers = {"Authorization": f"Bearer {TOKEN}"}
        answer = case.call(base_url=served.base, headers=headers)
        case.validate_response(answer, checks=CHECKS, headers=headers)

    answers()
