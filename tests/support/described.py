"""GitHub's own description of its API, as a judge of what our played GitHub answers and of what it is asked."""

from __future__ import annotations

import copy
import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jsonschema import Draft202012Validator

FILE = Path(__file__).parents[1] / "node/node_modules/@octokit/openapi/generated/api.github.com.json"


@cache
def description() -> dict[str, Any]:
    """The whole description, with what OpenAPI 3.0 calls nullable said as JSON Schema says it."""
    return _plain(json.loads(FILE.read_bytes()))  # type: ignore[no-any-return]


def _plain(node: Any) -> Any:
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    made = {name: _plain(value) for name, value in node.items()}
    if made.pop("nullable", None) is True:
        if isinstance(made.get("type"), str):
            made["type"] = [made["type"], "null"]
            if isinstance(made.get("enum"), list) and None not in made["enum"]:
                made["enum"] = [*made["enum"], None]
        else:
            return {"anyOf": [made, {"type": "null"}]}
    return made


@cache
def _paths() -> tuple[tuple[re.Pattern[str], str], ...]:
    found = []
    for path in description()["paths"]:
        last = path.endswith(("/{ref}", "/{path}", "/{branch}"))
        parts = [re.escape(part) if not part.startswith("{") else "[^/]+" for part in path.strip("/").split("/")]
        if last:
            parts[-1] = ".+"
        found.append((re.compile("/" + "/".join(parts)), path))
    return tuple(sorted(found, key=lambda one: (one[1].count("{"), -len(one[1]))))


def operation(method: str, path: str) -> dict[str, Any]:
    """What is described for a request; AssertionError where nothing is."""
    for pattern, name in _paths():
        if pattern.fullmatch(path) and method.lower() in description()["paths"][name]:
            return description()["paths"][name][method.lower()]  # type: ignore[no-any-return]
    raise AssertionError(f"GitHub describes no {method} {path}")


def _deref(node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        target: Any = description()
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part.replace("~1", "/").replace("~0", "~")]
        node = target
    return node


@cache
def _validator(method: str, path: str, status: str) -> Draft202012Validator | None:
    """Judges the body of one answer; None where the description says nothing of its body."""
    answer = operation(method, path)["responses"].get(status)
    if answer is None:
        return None
    content = _deref(answer).get("content", {}).get("application/json")
    if content is None:
        return None
    return Draft202012Validator({**content["schema"], "components": description()["components"]})


def judge_answer(method: str, path: str, status: int, body: Any) -> list[str]:
    """What is wrong with an answer."""
    validator = _validator(method, path, str(status))
    if validator is None:
        known = str(status) in operation(method, path)["responses"]
        return [] if known or status >= 500 or status in (401, 403, 429) else [f"{method} {path} never says {status}"]
    return [f"{method} {path} {status}: {one.json_path}: {one.message[:300]}" for one in validator.iter_errors(body)]


def judge_question(method: str, path: str, query: str, body: Any) -> list[str]:
    """What is wrong with a request: parameters that are not described or cannot be, a body that does not fit."""
    asked = operation(method, path)
    known = {one["name"]: one for one in map(_deref, asked.get("parameters", []))}
    wrong = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known or known[name]["in"] != "query":
            wrong.append(f"{method} {path} takes no parameter {name}")
            continue
        schema = _deref(known[name]["schema"])
        told: Any = int(value) if schema.get("type") == "integer" and value.isdigit() else value
        wrong += [f"{name}: {one.message}" for one in Draft202012Validator(
            {**schema, "components": description()["components"]}).iter_errors(told)]  # fmt: skip
    described = asked.get("requestBody")
    if described is None:
        return wrong + ([f"{method} {path} takes no body"] if body is not None else [])
    schema = _deref(described)["content"]["application/json"]["schema"]
    judge = Draft202012Validator({**schema, "components": description()["components"]})
    return wrong + [f"{method} {path}: {one.json_path}: {one.message[:300]}" for one in judge.iter_errors(body)]


@cache
def _example(name: str) -> Any:
    value = description()["components"]["examples"][name]["value"]
    return value[0] if isinstance(value, list) and value else value


def example(name: str) -> Any:
    """GitHub's own example of an answer (the first of a list), to be changed at will."""
    return copy.deepcopy(_example(name))
