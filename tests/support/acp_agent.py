"""A small agent over the Agent Client Protocol's own package: it does the steps that a file tells, one list per turn.

    python acp_agent.py SCRIPT.json FOLDER

A step is `{"log": "word"}` (written into ./log), `{"ask": "..."}` (asks leave; what was answered is logged),
`{"pause": 2.5}`, or `{"say": "..."}` (said in chunks). Sessions are files below FOLDER that remember their turns.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from pathlib import Path
from typing import Any

from acp import (
    PROTOCOL_VERSION,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    RequestError,
    run_agent,
    start_tool_call,
    update_agent_message_text,
)
from acp.interfaces import Client
from acp.schema import AgentCapabilities, PermissionOption, ToolCallUpdate

SCRIPT, FOLDER = Path(sys.argv[1]), Path(sys.argv[2])


def begun(session: str, text: str) -> list[dict[str, Any]]:
    """Write a turn down; its steps."""
    turns = sum(len(one.read_text("utf-8").splitlines()) for one in FOLDER.iterdir())
    with (FOLDER / session).open("a", encoding="utf-8") as file:
        file.write(json.dumps(text) + "\n")
    return list(json.loads(SCRIPT.read_text("utf-8"))[turns])


def logged(word: str) -> None:
    with Path("log").open("a", encoding="utf-8") as file:
        file.write(word + "\n")


class Steps:
    """The agent. Which turn it is, over all sessions and lives, is how many prompts were ever written down."""

    def __init__(self) -> None:
        self._client: Client | None = None
        self._cancelled = asyncio.Event()

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION, agent_capabilities=AgentCapabilities(load_session=True)
        )

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        name = str(uuid.uuid4())
        (FOLDER / name).write_text("", "utf-8")
        return NewSessionResponse(session_id=name)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        if not (FOLDER / session_id).exists():
            raise RequestError.invalid_params({"session": session_id})
        for _turn in (FOLDER / session_id).read_text("utf-8").splitlines():
            await self._said(session_id, "```tenuto\nstatus: complete\n```\nwords of a turn before")
        return LoadSessionResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        self._cancelled.clear()
        for step in begun(session_id, prompt[0].text):
            await self._step(session_id, **step)
            if self._cancelled.is_set():
                return PromptResponse(stop_reason="cancelled")
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        self._cancelled.set()

    async def _step(self, session: str, *, log: str = "", ask: str = "", pause: float = 0.0, say: str = "") -> None:
        assert self._client is not None
        if log:
            await self._client.session_update(session, start_tool_call(f"call-{log}", log))
            logged(log)
        if ask:
            options = [
                PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
                PermissionOption(option_id="no", name="No", kind="reject_once"),
            ]
            call = ToolCallUpdate(tool_call_id="asked", title=ask)
            answer = await self._client.request_permission(session_id=session, tool_call=call, options=options)
            logged(f"{ask}:{getattr(answer.outcome, 'option_id', 'cancelled')}")
        if pause:
            try:
                async with asyncio.timeout(pause):
                    await self._cancelled.wait()
            except TimeoutError:
                pass
        if say:
            await self._said(session, say)

    async def _said(self, session: str, text: str) -> None:
        assert self._client is not None
        for at in range(0, len(text), 5):
            await self._client.session_update(session, update_agent_message_text(text[at : at + 5]))


asyncio.run(run_agent(Steps()))  # type: ignore[arg-type]
