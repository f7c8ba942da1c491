"""The server that the protocol's judge wants to see: every fixture of its scenarios, on our own transport.

Run as a program it listens on a loopback port, prints its address, and ends with its standard input. `alone` serves
each request by itself, as the product does; `sessions` keeps sessions, which a server needs that asks its client
something. In both, our guard stands before it; the judge sends no token, so one is put in for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import socket
import sys
import threading
import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from starlette.types import ASGIApp, Receive, Scope, Send

from tenuto.engine.calling import Caller
from tenuto.surfaces.http.auth import Authenticator
from tenuto.surfaces.http.guard import Guard
from tenuto.surfaces.mcp.exchange import exchange
from tenuto.surfaces.mcp.mounted import Mounted, Serve
from tenuto.surfaces.mcp.ways import Way

TOKEN = "a-token-of-the-fixtures-that-is-long-enough-for-it"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
SECRET = b"only this run knows it"
Json = dict[str, Any]
Context = Any
Called = Callable[[Context, types.CallToolRequestParams], Awaitable[types.CallToolResult | types.InputRequiredResult]]

warnings.simplefilter("ignore", MCPDeprecationWarning)  # the judge still tries what the newest version gives up


def said(text: str, *more: types.ContentBlock, failed: bool = False) -> types.CallToolResult:
    """A tool's answer that begins with these words."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=text), *more], is_error=failed)


def only(content: types.ContentBlock) -> Called:
    """A tool that always gives this."""

    async def call(_context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[content])

    return call


def embedded(uri: str, kind: str, text: str) -> types.EmbeddedResource:
    """A resource within a message."""
    return types.EmbeddedResource(
        type="resource", resource=types.TextResourceContents(uri=uri, mime_type=kind, text=text)
    )


IMAGE = types.ImageContent(type="image", data=PNG, mime_type="image/png")
AUDIO = types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")

# -- tools that talk while they work


async def mixed(_context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    resource = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return said("Multiple content types test:", IMAGE, resource)


async def failing(_context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    return said("This tool intentionally returns an error for testing", failed=True)


async def logging_tool(context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", line, related_request_id=context.request_id)
        await asyncio.sleep(0.05)
    return said("logged")


async def progressing(context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    for part in (0, 50, 100):
        await context.session.report_progress(part, 100)
        await asyncio.sleep(0.05)
    return said("progressed")


async def reconnecting(context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
    await asyncio.sleep(0.2)
    return said("Reconnection test completed")


# -- tools that ask the client, over a session


async def sampling(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    prompt = str((params.arguments or {})["prompt"])
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))
    told = await context.session.create_message(
        messages=[message], max_tokens=100, related_request_id=context.request_id
    )
    return said(f"LLM response: {getattr(told.content, 'text', '')}")


def eliciting(properties: Json, needed: list[str], begins: str, asks: str = "") -> Called:
    """A tool that asks the user for these properties."""
    schema = {"type": "object", "properties": properties, "required": needed}

    async def call(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        message = asks or str((params.arguments or {})["message"])
        told = await context.session.elicit_form(message, schema, context.request_id)
        return said(f"{begins}: action={told.action}, content={json.dumps(told.content)}")

    return call


USER = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}
DEFAULTS: Json = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
TITLED = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)]
PLAIN = {"type": "string", "enum": ["option1", "option2", "option3"]}
ENUMS: Json = {
    "untitledSingle": PLAIN,
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": PLAIN},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}

# -- tools that ask the client within their result


def form(message: str, name: str, kind: str = "string") -> types.ElicitRequest:
    """A question to the user for one value."""
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    return types.ElicitRequest(params=params)


def sample(words: str, most: int) -> types.CreateMessageRequest:
    """A question to the client's model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=words))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=most))


def sealed(state: str) -> str:
    """A state that the client carries and cannot change."""
    return f"{state}.{hmac.new(SECRET, state.encode(), hashlib.sha256).hexdigest()}"


def opened(given: str | None) -> str:
    """The state that was sealed; raises MCPError for any other."""
    state = (given or "").rpartition(".")[0]
    if given is None or not hmac.compare_digest(sealed(state), given):
        raise MCPError(types.INVALID_PARAMS, "the request state was not made here")
    return state


Asking = types.CallToolRequestParams | types.GetPromptRequestParams
Rounds = list[Mapping[str, Any]]


def rounds(*asked: Mapping[str, Any], stateful: bool = False) -> Called:
    """A tool that asks these requests, one group after the other, and then tells what it was answered."""

    async def call(_context: Context, params: types.CallToolRequestParams) -> Any:
        return asking(params, list(asked), stateful=stateful) or said(f"state-ok {told(params)}")

    return call


def asking(params: Asking, asked: Rounds, *, stateful: bool) -> types.InputRequiredResult | None:
    """What is still to be asked, or None when all is answered."""
    number = int(opened(params.request_state)) if stateful and params.request_state is not None else 0
    if answered(params, asked[number]):
        if stateful and params.request_state is None:
            raise MCPError(types.INVALID_PARAMS, "the request state is missing")
        number += 1
    if number == len(asked):
        return None
    state = sealed(str(number)) if stateful else None
    return types.InputRequiredResult(input_requests=dict(asked[number]), request_state=state)


def answered(params: Asking, asked: Mapping[str, Any]) -> bool:
    """Whether everything that was asked has an answer of the right kind."""
    kinds = {
        "elicitation/create": types.ElicitResult,
        "sampling/createMessage": types.CreateMessageResult,
        "roots/list": types.ListRootsResult,
    }
    given = params.input_responses or {}
    return all(isinstance(given.get(name), kinds[request.method]) for name, request in asked.items())


def told(params: Asking) -> str:
    """The answers that came, in words."""
    words = []
    for answer in (params.input_responses or {}).values():
        match answer:
            case types.ElicitResult(content=content):
                words.append(f"Hello, {', '.join(str(value) for value in (content or {}).values())}!")
            case types.ListRootsResult(roots=roots):
                words.append(", ".join(str(root.uri) for root in roots))
            case _:
                words.append(str(getattr(getattr(answer, "content", None), "text", "")))
    return " ".join(words)


async def capable(context: Context, params: types.CallToolRequestParams) -> Any:
    """Asks only what the client has said it can answer."""
    can = context.session.client_capabilities
    asked: dict[str, Any] = {}
    if can is not None and can.sampling is not None:
        asked["question"] = sample("What is the capital of France?", 100)
    if can is not None and can.elicitation is not None:
        asked["name"] = form("What is your name?", "name")
    return (asking(params, [asked], stateful=False) if asked else None) or said("nothing to ask")


async def needing(context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    can = context.session.client_capabilities
    if can is None or can.sampling is None:
        needed: Json = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "sampling is needed", needed)
    return said("sampling was declared")


# -- everything that is listed

TREE: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Fixture:
    """A tool: what it takes and what it does."""

    call: Called
    schema: Mapping[str, Any] | None = None

    def listed(self, name: str) -> types.Tool:
        """The tool as it is listed."""
        schema = self.schema or {"type": "object", "properties": {}}
        return types.Tool(name=name, description=f"The fixture {name}.", input_schema=dict(schema))


def one(name: str) -> Json:
    """The schema of a tool that takes one text."""
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


HEADERS = {"region": {"type": "string", "x-mcp-header": "Region"}}
WHO = {"user_name": form("What is your name?", "name")}
MANY = WHO | {"greeting": sample("Generate a greeting", 50), "client_roots": types.ListRootsRequest()}
CONFIRM = {"confirm": form("Please confirm", "ok", "boolean")}
STEPS = (
    {"step1": form("Step 1: What is your name?", "name")},
    {"step2": form("Step 2: What is your favorite color?", "color")},
)
TOOLS: Mapping[str, Fixture] = {
    "test_simple_text": Fixture(
        only(types.TextContent(type="text", text="This is a simple text response for testing."))
    ),
    "test_image_content": Fixture(only(IMAGE)),
    "test_audio_content": Fixture(only(AUDIO)),
    "test_embedded_resource": Fixture(
        only(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."))
    ),
    "test_multiple_content_types": Fixture(mixed),
    "test_error_handling": Fixture(failing),
    "test_tool_with_logging": Fixture(logging_tool),
    "test_logging_tool": Fixture(logging_tool),
    "test_tool_with_progress": Fixture(progressing),
    "test_reconnection": Fixture(reconnecting),
    "test_sampling": Fixture(sampling, one("prompt")),
    "test_elicitation": Fixture(eliciting(USER, ["username", "email"], "User response"), one("message")),
    "test_elicitation_sep1034_defaults": Fixture(eliciting(DEFAULTS, [], "Elicitation completed", "Who?")),
    "test_elicitation_sep1330_enums": Fixture(eliciting(ENUMS, [], "Elicitation completed", "Which?")),
    "json_schema_2020_12_tool": Fixture(only(types.TextContent(type="text", text="It takes what it takes.")), TREE),
    "test_x_mcp_header": Fixture(
        only(types.TextContent(type="text", text="The header fits.")), {**one("region"), "properties": HEADERS}
    ),
    "test_missing_capability": Fixture(needing),
    "test_streaming_elicitation": Fixture(rounds(WHO)),
    "test_input_required_result_elicitation": Fixture(rounds(WHO)),
    "test_input_required_result_sampling": Fixture(
        rounds({"capital_question": sample("What is the capital of France?", 100)})
    ),
    "test_input_required_result_list_roots": Fixture(rounds({"client_roots": types.ListRootsRequest()})),
    "test_input_required_result_request_state": Fixture(rounds(CONFIRM, stateful=True)),
    "test_input_required_result_tampered_state": Fixture(rounds(CONFIRM, stateful=True)),
    "test_input_required_result_multiple_inputs": Fixture(rounds(MANY, stateful=True)),
    "test_input_required_result_multi_round": Fixture(rounds(*STEPS, stateful=True)),
    "test_input_required_result_capabilities": Fixture(capable),
}
RESOURCES: Mapping[str, tuple[str, str]] = {
    "test://static-text": ("text/plain", "This is the content of the static text resource."),
    "test://static-binary": ("image/png", ""),
    "test://watched-resource": ("text/plain", "Watched resource content"),
}
PROMPTS: Mapping[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


async def list_tools(_context: Context, _page: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[fixture.listed(name) for name, fixture in TOOLS.items()])


async def call_tool(context: Context, params: types.CallToolRequestParams) -> Any:
    fixture = TOOLS.get(params.name)
    if fixture is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await fixture.call(context, params)


async def list_resources(_context: Context, _page: Any) -> types.ListResourcesResult:
    found = [
        types.Resource(uri=uri, name=uri.rpartition("/")[2], description=f"The fixture {uri}.", mime_type=kind)
        for uri, (kind, _) in RESOURCES.items()
    ]
    return types.ListResourcesResult(resources=found)


async def list_templates(_context: Context, _page: Any) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(
        uri_template="test://template/{id}/data",
        name="template",
        description="By number.",
        mime_type="application/json",
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(_context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri == "test://static-binary":
        blob = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
        return types.ReadResourceResult(contents=[blob])
    if uri in RESOURCES:
        kind, text = RESOURCES[uri]
    elif uri.startswith("test://template/") and uri.endswith("/data"):
        number = uri.removeprefix("test://template/").removesuffix("/data")
        kind = "application/json"
        text = json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})
    else:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)])


async def list_prompts(_context: Context, _page: Any) -> types.ListPromptsResult:
    found = [
        types.Prompt(
            name=name,
            description=f"The fixture {name}.",
            arguments=[types.PromptArgument(name=one, description=one, required=True) for one in takes],
        )
        for name, takes in PROMPTS.items()
    ]
    return types.ListPromptsResult(prompts=found)


async def get_prompt(_context: Context, params: types.GetPromptRequestParams) -> Any:
    given = params.arguments or {}
    contents: list[types.ContentBlock]
    match params.name:
        case "test_simple_prompt":
            contents = [types.TextContent(type="text", text="This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            words = f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"
            contents = [types.TextContent(type="text", text=words)]
        case "test_prompt_with_embedded_resource":
            text = "Embedded resource content for testing."
            after = types.TextContent(type="text", text="Please process the embedded resource above.")
            contents = [embedded(given["resourceUri"], "text/plain", text), after]
        case "test_prompt_with_image":
            contents = [IMAGE, types.TextContent(type="text", text="Please analyze the image above.")]
        case "test_input_required_result_prompt":
            asked = {"user_context": form("What context should the prompt use?", "context")}
            more = asking(params, [asked], stateful=False)
            if more is not None:
                return more
            contents = [types.TextContent(type="text", text=told(params))]
        case _:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=one) for one in contents])


async def complete(_context: Context, _params: types.CompleteRequestParams) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))


async def acknowledge(_context: Context, _params: Any) -> types.EmptyResult:
    return types.EmptyResult()


def make_server() -> Server[Any]:
    """A server with every fixture."""
    return Server(
        "fixtures",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=acknowledge,
        on_unsubscribe_resource=acknowledge,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=acknowledge,
    )


# -- serving


class Kept(EventStore):
    """What was sent on each stream, in order, for a client that comes back."""

    def __init__(self) -> None:
        self._sent: list[tuple[StreamId, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: StreamId, message: types.JSONRPCMessage | None) -> EventId:
        self._sent.append((stream_id, message))
        return str(len(self._sent))

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        last = int(last_event_id)
        if not 1 <= last <= len(self._sent):
            return None
        stream = self._sent[last - 1][0]
        for number, (at, message) in enumerate(self._sent[last:], last + 1):
            if at == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


class Tokened:
    """ASGI: puts the token in, which the judge has no way to send."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [*scope["headers"], (b"authorization", f"Bearer {TOKEN}".encode())]
        await self._app({**scope, "headers": headers}, receive, send)


def alone() -> Serve:
    """Serves each request by itself, as the product does."""

    async def serve(_way: Way, scope: Scope, receive: Receive, send: Send) -> None:
        await exchange(make_server(), scope, receive, send)

    return serve


def nobody(_caller: Caller) -> Any:
    """The fixtures reach no desk."""
    return None


async def main(mode: str) -> None:
    """Serve until standard input ends."""
    logging.disable(logging.CRITICAL)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.bind(("127.0.0.1", 0))
    port = int(listening.getsockname()[1])
    manager = StreamableHTTPSessionManager(make_server(), event_store=Kept(), retry_interval=100)
    inner: ASGIApp = Mounted(nobody, load=alone) if mode == "alone" else manager.handle_request
    guard = Guard(inner, Authenticator(TOKEN, lambda _digest: None), port)
    config = uvicorn.Config(
        Tokened(guard), lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)

    def until_input_ends() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=until_input_ends, daemon=True).start()
    print(f"http://127.0.0.1:{port}/mcp", flush=True)
    async with manager.run():
        await server.serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
