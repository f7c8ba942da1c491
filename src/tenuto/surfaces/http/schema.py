"""The API's description as OpenAPI, made from the table of verbs and nothing else.

Every address with what it takes, every answer it can give. It is made when somebody asks for it.
"""

from __future__ import annotations

import re
from typing import Any

from tenuto import __version__
from tenuto.surfaces.routes import PREFIX
from tenuto.surfaces.verbs import VERBS, Verb

#: What each answer that is not a success means.
FAILURES = {
    "400": "the request contradicts itself",
    "401": "no valid bearer token",
    "403": "this token, host or origin opens nothing here",
    "404": "nothing has that name",
    "408": "the body did not arrive in time",
    "409": "the idempotency key was used for another request, or something changed too fast",
    "413": "the body is too large",
    "415": "the body is not JSON",
    "422": "a parameter is wrong; the field is named",
    "423": "understood, and refused now; the because is told",
    "429": "too much at once; nothing was made",
    "500": "a fault of ours, or a registry that cannot be read",
    "503": "no supervisor leads",
    "507": "the disk is full",
}
READING = ("400", "401", "403", "404", "408", "413", "415", "422", "423", "429", "500", "503")
CHANGING = (*READING, "409", "507")

#: The keys that every success of a reading verb has.
TELLS = {
    "status": ("version", "registry", "standing", "text", "now", "held", "supervisor", "counts", "troubles"),
    "whoami": ("role", "name", "task", "run", "verbs"),
    "run.list": ("runs",),
    "run.show": ("run", "tasks"),
    "slots": ("slots", "free", "counts", "held", "line", "pending"),
    "token.list": ("tokens",),
    "executor.list": ("executors",),
    "session.list": ("sessions",),
    "task.list": ("tasks",),
    "task.show": ("run", "task", "objective", "because", "attempts", "commands", "waits", "messages", "reports"),
    "task.assignment": ("task", "run", "title", "cwd", "objective", "acceptance"),
    "task.follow": ("task", "because", "events", "last"),
    "task.explain": ("task", "at", "because", "rungs", "intent", "text", "events"),
    "policy.show": ("policy",),
    "attention": ("items",),
    "events": ("events", "last"),
    "message.list": ("messages",),
    "checkpoint.show": ("reports",),
    "observe.list": ("task", "at", "health", "clocks", "flaws", "tools", "pages", "observations"),
    "dispatch.plan": ("task", "at", "rungs", "intent", "because", "fence", "members", "proof", "text"),
    "orchestrate": ("selected", "considered", "at", "text"),
    "tool.list": ("sessions",),
    "page.list": ("pages", "unasked"),
    "job.list": ("jobs",),
    "limit.list": ("limits",),
    "permission.list": ("permissions",),
    "chain.list": ("chains",),
    "chain.status": ("chain", "links", "older", "next", "units", "counts", "sweep"),
    "chain.next": ("chain", "state", "standing", "unit", "mine", "left", "because", "notes", "envelope", "prompt"),
    "chain.unit": ("chain", "state", "standing", "unit", "mine", "left", "because", "notes", "link"),
    "chain.sweep": ("units", "counts"),
    "chain.gates": ("stopped", "mandate", "proposal", "reviews", "held"),
    "phase.status": ("chain", "base", "seen", "asks", "phases"),
    "worktree.list": ("worktrees",),
    "lease.list": ("holder", "conversations"),
    "command.list": ("commands",),
    "command.show": ("command",),
}

#: The same of the verbs that record what they see and make nothing.
LOOKS = {"reconcile": ("task", "fence", "members", "findings", "wanting", "text")}

TEXT = {"type": "string"}
ERROR = {
    "type": "object",
    "required": ["error"],
    "additionalProperties": False,
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "additionalProperties": False,
            "properties": dict.fromkeys(("code", "message", "because", "field", "see"), TEXT),
        }
    },
}
DONE = {
    "type": "object",
    "required": ["result", "replayed", "effects", "text"],
    "additionalProperties": False,
    "properties": {
        "result": {"type": "object"},
        "replayed": {"type": "boolean"},
        "effects": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["task", "changed", "because"],
                "properties": {"task": TEXT, "changed": {"type": "boolean"}, "because": {"type": ["object", "null"]}},
            },
        },
        "text": TEXT,
    },
}


def document() -> dict[str, Any]:
    """The whole description."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {"Error": ERROR, "Done": DONE}
    for verb in VERBS.values():
        for path in (verb.route.path, verb.route.run_path):
            if path is not None:
                told = _operation(verb, path, schemas, on_run=path == verb.route.run_path)
                paths.setdefault(PREFIX + path, {})[verb.route.method.lower()] = told
    paths["/healthz"] = {
        "get": {
            "operationId": "healthz",
            "summary": "Say that somebody is here",
            "security": [],
            "responses": {
                "200": _content("here", {"type": "object", "required": ["ok"]}),
                **{code: _failure(code) for code in ("400", "403", "408", "413", "415")},
            },
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tenuto", "version": __version__},
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(verb: Verb, path: str, schemas: dict[str, Any], *, on_run: bool) -> dict[str, Any]:
    whole = verb.params.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(whole.pop("$defs", {}))
    properties: dict[str, Any] = whole.get("properties", {})
    required = set(whole.get("required", ()))
    names = re.findall(r"{(\w+)}", path)
    parameters = [{"name": name, "in": "path", "required": True, "schema": properties[name]} for name in names]
    rest = {name: schema for name, schema in properties.items() if name not in names}
    told: dict[str, Any] = {
        "operationId": f"{verb.name}.of_run" if on_run else verb.name,
        "summary": verb.summary,
        "responses": _responses(verb),
    }
    if verb.mutates:
        key = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"}
        parameters.append({"name": "Idempotency-Key", "in": "header", "required": True, "schema": key})
        needed = sorted(required - set(names))
        shape = {"type": "object", "properties": rest, "required": needed, "additionalProperties": False}
        told["requestBody"] = {"required": bool(needed), "content": {"application/json": {"schema": shape}}}
    else:
        parameters += [
            {"name": name, "in": "query", "required": name in required, "schema": schema}
            for name, schema in rest.items()
        ]
    return told | {"parameters": parameters}


def _responses(verb: Verb) -> dict[str, Any]:
    done = {"$ref": "#/components/schemas/Done"}
    if verb.name in LOOKS:
        shape = {"type": "object", "required": list(LOOKS[verb.name])}
        answers = {"200": _content("what was seen, and recorded", shape)}
    elif verb.mutates:
        answers = {
            "200": _content("done before, or nothing was to be done", done),
            "201": _content("done", done),
        }
        replay = {"schema": {"type": "string", "const": "true"}, "description": "an earlier call did it"}
        answers["200"]["headers"] = {"Idempotent-Replay": replay}
    else:
        answers = {"200": _content("the answer", {"type": "object", "required": list(TELLS[verb.name])})}
    failures = CHANGING if verb.mutates else READING
    if verb.name == "events":
        answers["200"]["content"]["text/event-stream"] = {"schema": TEXT}
    return answers | {code: _failure(code) for code in sorted(failures)}


def _content(description: str, shape: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": shape}}}


def _failure(code: str) -> dict[str, Any]:
    return _content(FAILURES[code], {"$ref": "#/components/schemas/Error"})
