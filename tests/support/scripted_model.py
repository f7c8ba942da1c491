"""A model whose every answer is written beforehand, for real agent programs to talk to.

It listens on loopback, speaks four dialects, and plays a list of steps in order: say words, call a tool, wait, fail.
Only a request that offers tools takes a step, because agent programs also ask for titles and the like; such a request
is answered with a word. A script that is played to its end answers with words, so that no program hangs on it, and
remembers that it was asked for more.

    with ScriptedModel([Call("task_status"), Say("done")]) as model:
        run_a_program(model.url)
    assert model.left == () and model.complaints == []
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from tests.support.model_dialects import CHAT, GEMINI, MESSAGES, RESPONSES, Asked, Deed, Dialect, Text, Use

Json = dict[str, Any]
PATIENCE = 120.0
IDLE = "Nothing more is to be done."


@dataclass(frozen=True)
class Say:
    """Words that end the turn; a function of what was asked makes them then."""

    text: str | Callable[[Asked], str]


@dataclass(frozen=True)
class Call:
    """One call of the tool whose name is, or ends with, `tool`; a function of what was asked makes the arguments."""

    tool: str
    arguments: Json | Callable[[Asked], Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Wait:
    """Take `seconds`, or until `until` is set, before the step that follows."""

    seconds: float = PATIENCE
    until: threading.Event | None = None


@dataclass(frozen=True)
class Fail:
    """An HTTP failure, with `headers` and a `body` where given; the program's next try takes the next step."""

    status: int = 529
    message: str = "overloaded, as it was written"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Json | None = None


@dataclass(frozen=True)
class Late:
    """A failure that is made when it is asked for, because it tells a moment."""

    make: Callable[[], Fail]


Step = Say | Call | Wait | Fail | Late


class ScriptedModel:
    """A server that plays `steps` to whoever asks. `asked` is what was asked, `bodies` how, in order."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = list(steps)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._server = uvicorn.Server(
            uvicorn.Config(self._app(), lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=1)
        )
        self._thread = threading.Thread(target=self._serve, name="scripted model", daemon=True)
        self.asked: list[Asked] = []
        self.bodies: list[Json] = []
        self.complaints: list[str] = []
        self.url = ""

    @property
    def left(self) -> tuple[Step, ...]:
        """The steps that nobody asked for yet."""
        return tuple(self._steps)

    @property
    def results(self) -> tuple[str, ...]:
        """What the program's tools answered, as the latest request tells it."""
        return max((asked.results for asked in self.asked), key=len, default=())

    def __enter__(self) -> Self:
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen()
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        self._socket.close()
        assert not self._thread.is_alive(), "the scripted model does not end"

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    def _app(self) -> Starlette:
        def at(path: str, dialect: Dialect) -> Route:
            async def answer(request: Request) -> Response:
                return await self._answer(request, dialect)

            return Route(path, answer, methods=["POST"])

        return Starlette(
            routes=[
                at("/v1/messages", MESSAGES),
                at("/v1/responses", RESPONSES),
                at("/v1/chat/completions", CHAT),
                at("/v1beta/models/{model:path}", GEMINI),
                Route("/v1/messages/count_tokens", _counted, methods=["POST"]),
                Route("/v1/models", _models, methods=["GET"]),
            ]
        )

    async def _answer(self, request: Request, dialect: Dialect) -> Response:
        body = json.loads(await request.body())
        if request.url.path.endswith(":countTokens"):
            return JSONResponse({"totalTokens": 11})
        asked = dialect.read(body, request.url.path)
        if asked.schema or not asked.tools:
            return self._told(dialect, asked, Text('{"title": "Work"}'))
        self.asked.append(asked)
        self.bodies.append(body)
        step = await self._next()
        match step:
            case Fail(status, message, headers, whole):
                told = dialect.failure(status, message) if whole is None else whole
                return JSONResponse(told, status, headers=dict(headers))
            case Say(text):
                return self._told(dialect, asked, Text(text if isinstance(text, str) else text(asked)))
            case Call():
                return self._told(dialect, asked, self._use(step, asked))

    async def _next(self) -> Say | Call | Fail:
        while self._steps:
            step = self._steps.pop(0)
            if isinstance(step, Late):
                return step.make()
            if not isinstance(step, Wait):
                return step
            if step.until is None:
                await asyncio.sleep(step.seconds)
            elif not await asyncio.to_thread(step.until.wait, step.seconds):
                self.complaints.append(f"nothing came within {step.seconds} s")
        self.complaints.append("asked for more than was written")
        return Say(IDLE)

    def _use(self, step: Call, asked: Asked) -> Deed:
        """The call, by the name under which the program offers the tool: whole, or behind a prefix of its own."""
        named = [name for name in asked.tools if name == step.tool]
        named += [name for name in asked.tools if name.endswith(("_" + step.tool, "." + step.tool))]
        if not named:
            self.complaints.append(f"no tool {step.tool} among {sorted(asked.tools)}")
            return Text(f"There is no tool {step.tool}.")
        return Use(named[0], step.arguments if isinstance(step.arguments, dict) else step.arguments(asked))

    def _told(self, dialect: Dialect, asked: Asked, deed: Deed) -> Response:
        if not asked.stream:
            return JSONResponse(dialect.whole(asked, deed))

        async def lines() -> AsyncIterator[str]:
            for name, data in dialect.events(asked, deed):
                said = data if isinstance(data, str) else json.dumps(data)
                yield (f"event: {name}\n" if name else "") + f"data: {said}\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def _counted(_request: Request) -> Response:
    return JSONResponse({"input_tokens": 11})


async def _models(_request: Request) -> Response:
    model = {"id": "scripted", "object": "model", "created": 1, "owned_by": "tests"}
    return JSONResponse({"object": "list", "data": [model], "models": []})
