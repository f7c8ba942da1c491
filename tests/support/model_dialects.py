"""How four kinds of model servers are spoken to: what a request asks, and how an answer is written.

Anthropic's Messages, OpenAI's Responses and Chat Completions, and Gemini's generateContent, as far as agent programs
use them: text, one tool call at a time, streamed or whole. Nothing here decides what is answered.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
NUMBERS = itertools.count(1)


def fresh(kind: str) -> str:
    """An identifier that no other answer of this process has."""
    return f"{kind}_{next(NUMBERS):024d}"


@dataclass(frozen=True)
class Asked:
    """One request, in no dialect: the words of the user, the results of tools, and the tools that are offered.

    `spaces` holds the namespace and short name of each tool that has one.
    """

    model: str
    stream: bool
    words: tuple[str, ...]
    results: tuple[str, ...]
    tools: tuple[str, ...]
    spaces: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    schema: bool = False


@dataclass(frozen=True)
class Text:
    """Words, which end the turn."""

    text: str


@dataclass(frozen=True)
class Use:
    """One call of a tool by its full name."""

    tool: str
    arguments: Json


Deed = Text | Use
Event = tuple[str | None, Json | str]


@dataclass(frozen=True)
class Dialect:
    """One kind of server: reading a request, an answer as a whole, as events, and a failure."""

    name: str
    read: Callable[[Json, str], Asked]
    whole: Callable[[Asked, Deed], Json]
    events: Callable[[Asked, Deed], Iterator[Event]]
    failure: Callable[[int, str], Json]


def flat(content: Any) -> str:
    """All words of a message's content, however deeply it is put together."""
    match content:
        case str():
            return content
        case list():
            return "\n".join(part for one in content if (part := flat(one)))
        case {"text": str(text)}:
            return text
        case dict():
            return next(
                (flat(content[name]) for name in ("content", "output", "response", "result") if name in content), ""
            )
        case _:
            return ""


# -- Anthropic Messages


def _read_messages(body: Json, _path: str) -> Asked:
    words: list[str] = []
    results: list[str] = []
    for message in body.get("messages", []):
        content = message["content"]
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if part["type"] == "tool_result":
                results.append(flat(part.get("content")))
            elif part["type"] == "text" and message["role"] == "user":
                words.append(part["text"])
    tools = tuple(tool.get("name", "") for tool in body.get("tools", []))
    return Asked(str(body.get("model")), bool(body.get("stream")), tuple(words), tuple(results), tools)


def _message(asked: Asked, deed: Deed) -> tuple[Json, Json, str]:
    usage = {"input_tokens": 11, "output_tokens": 7, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    head: Json = {
        "id": fresh("msg"), "type": "message", "role": "assistant", "model": asked.model, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    match deed:
        case Text(text):
            return head, {"type": "text", "text": text}, "end_turn"
        case Use(tool, arguments):
            return head, {"type": "tool_use", "id": fresh("toolu"), "name": tool, "input": arguments}, "tool_use"


def _whole_message(asked: Asked, deed: Deed) -> Json:
    head, block, stop = _message(asked, deed)
    return head | {"content": [block], "stop_reason": stop}


def _message_events(asked: Asked, deed: Deed) -> Iterator[Event]:
    head, block, stop = _message(asked, deed)

    def event(kind: str, **more: Any) -> Event:
        return kind, {"type": kind, **more}

    if isinstance(deed, Text):
        empty, delta = block | {"text": ""}, {"type": "text_delta", "text": deed.text}
    else:
        empty, delta = block | {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(deed.arguments)}
    yield event("message_start", message=head)
    yield event("content_block_start", index=0, content_block=empty)
    yield event("content_block_delta", index=0, delta=delta)
    yield event("content_block_stop", index=0)
    yield event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage={"output_tokens": 7})
    yield event("message_stop")


def _message_failure(status: int, message: str) -> Json:
    kind = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


# -- OpenAI Responses


def _read_responses(body: Json, _path: str) -> Asked:
    given = body.get("input", [])
    words: list[str] = []
    results: list[str] = []
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        kind = item.get("type", "message")
        if kind in ("function_call_output", "custom_tool_call_output"):
            results.append(flat(item.get("output")))
        elif kind == "message" and item["role"] == "user":
            words.append(flat(item["content"]))
    names: list[str] = []
    spaces: dict[str, tuple[str, str]] = {}
    for tool in body.get("tools", []):
        if tool.get("type") == "namespace":
            for one in tool.get("tools", []):
                name = f"{tool['name'].removesuffix('__')}__{one['name']}"
                names.append(name)
                spaces[name] = (tool["name"], one["name"])
        else:
            names.append(tool.get("name") or tool.get("type", ""))
    return Asked(str(body.get("model")), bool(body.get("stream")), tuple(words), tuple(results), tuple(names), spaces)


_RESPONSE_USAGE = {
    "input_tokens": 11, "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 18,
}  # fmt: skip


def _item(asked: Asked, deed: Deed) -> Json:
    match deed:
        case Text(text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            about = {"type": "message", "id": fresh("msg"), "role": "assistant"}
            return about | {"status": "completed", "content": content}
        case Use(tool, arguments):
            space, name = asked.spaces.get(tool, (None, tool))
            about = {"type": "function_call", "id": fresh("fc"), "call_id": fresh("call"), "name": name}
            about |= {} if space is None else {"namespace": space}
            return about | {"arguments": json.dumps(arguments), "status": "completed"}


def _response(asked: Asked, items: Sequence[Json], status: str) -> Json:
    about = {"id": fresh("resp"), "object": "response", "created_at": 1, "model": asked.model}
    return about | {"status": status, "output": list(items), "usage": _RESPONSE_USAGE if items else None}


def _whole_response(asked: Asked, deed: Deed) -> Json:
    return _response(asked, [_item(asked, deed)], "completed")


def _response_events(asked: Asked, deed: Deed) -> Iterator[Event]:
    numbers = itertools.count()
    item = _item(asked, deed)
    at = {"item_id": item["id"], "output_index": 0}

    def event(kind: str, **more: Any) -> Event:
        return kind, {"type": kind, "sequence_number": next(numbers), **more}

    empty: Json = {"content": []} if isinstance(deed, Text) else {"arguments": ""}
    begun = item | {"status": "in_progress"} | empty
    whole = _response(asked, [item], "completed")
    yield event("response.created", response=whole | {"status": "in_progress", "output": [], "usage": None})
    yield event("response.output_item.added", output_index=0, item=begun)
    match deed:
        case Text(text):
            part = {"type": "output_text", "text": "", "annotations": []}
            yield event("response.content_part.added", **at, content_index=0, part=part)
            yield event("response.output_text.delta", **at, content_index=0, delta=text)
            yield event("response.output_text.done", **at, content_index=0, text=text)
        case Use():
            yield event("response.function_call_arguments.delta", **at, delta=item["arguments"])
            yield event("response.function_call_arguments.done", **at, arguments=item["arguments"])
    yield event("response.output_item.done", output_index=0, item=item)
    yield event("response.completed", response=whole)


def _openai_failure(status: int, message: str) -> Json:
    return {"error": {"message": message, "type": "server_error", "code": str(status), "param": None}}


# -- OpenAI Chat Completions


def _read_chat(body: Json, _path: str) -> Asked:
    said = body.get("messages", [])
    words = tuple(flat(one.get("content")) for one in said if one["role"] == "user")
    results = tuple(flat(one.get("content")) for one in said if one["role"] == "tool")
    tools = tuple(tool["function"]["name"] for tool in body.get("tools", []))
    return Asked(str(body.get("model")), bool(body.get("stream")), words, results, tools)


def _chat(asked: Asked, deed: Deed) -> tuple[Json, Json, str]:
    head = {"id": fresh("chatcmpl"), "created": 1, "model": asked.model}
    match deed:
        case Text(text):
            return head, {"content": text}, "stop"
        case Use(tool, arguments):
            function = {"name": tool, "arguments": json.dumps(arguments)}
            call = {"index": 0, "id": fresh("call"), "type": "function", "function": function}
            return head, {"content": None, "tool_calls": [call]}, "tool_calls"


_CHAT_USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def _whole_chat(asked: Asked, deed: Deed) -> Json:
    head, said, stop = _chat(asked, deed)
    choice = {"index": 0, "finish_reason": stop, "message": {"role": "assistant", **said}}
    return head | {"object": "chat.completion", "usage": _CHAT_USAGE, "choices": [choice]}


def _chat_events(asked: Asked, deed: Deed) -> Iterator[Event]:
    head, said, stop = _chat(asked, deed)
    head |= {"object": "chat.completion.chunk"}
    for delta, ending in (({"role": "assistant", "content": ""}, None), (said, None), ({}, stop)):
        yield None, head | {"choices": [{"index": 0, "delta": delta, "finish_reason": ending}]}
    yield None, head | {"choices": [], "usage": _CHAT_USAGE}
    yield None, "[DONE]"


# -- Gemini generateContent


def _read_gemini(body: Json, path: str) -> Asked:
    words: list[str] = []
    results: list[str] = []
    for content in body.get("contents", []):
        for part in content.get("parts", []):
            if "functionResponse" in part:
                results.append(json.dumps(part["functionResponse"].get("response")))
            elif part.get("text") and content.get("role") == "user":
                words.append(part["text"])
    tools = tuple(one["name"] for tool in body.get("tools", []) for one in tool.get("functionDeclarations", []))
    wanted = body.get("generationConfig", {})
    schema = "responseSchema" in wanted or "responseJsonSchema" in wanted
    model = path.rpartition("/")[2].partition(":")[0]
    return Asked(model, path.endswith(":streamGenerateContent"), tuple(words), tuple(results), tools, schema=schema)


def _whole_gemini(asked: Asked, deed: Deed) -> Json:
    if isinstance(deed, Text):
        part: Json = {"text": deed.text}
    else:
        part = {"functionCall": {"name": deed.tool, "args": deed.arguments}}
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": asked.model}


def _gemini_events(asked: Asked, deed: Deed) -> Iterator[Event]:
    yield None, _whole_gemini(asked, deed)


def _gemini_failure(status: int, message: str) -> Json:
    return {"error": {"code": status, "message": message, "status": "UNAVAILABLE"}}


MESSAGES = Dialect("messages", _read_messages, _whole_message, _message_events, _message_failure)
RESPONSES = Dialect("responses", _read_responses, _whole_response, _response_events, _openai_failure)
CHAT = Dialect("chat", _read_chat, _whole_chat, _chat_events, _openai_failure)
GEMINI = Dialect("gemini", _read_gemini, _whole_gemini, _gemini_events, _gemini_failure)
