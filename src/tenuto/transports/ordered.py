"""Orders as they travel: the payload of a command frame, and the order that it is again on the other side.

A payload names its type, so that an executor refuses what it does not know instead of guessing. Durations are seconds.
What a payload says is for the executor alone; nothing here looks into a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, assert_never

from tenuto.model.ids import SHAPE, CommandId
from tenuto.ports import Check, ClosePage, Halt, Order, Reply, Steer, TakeOver, Turn

PROGRAM: Final = "program"
"""The adapter of a plain program, which is not said."""


class NotAnOrder(ValueError):
    """A payload that is none of the orders this program knows; the sentence says why."""


def payload_of(order: Order) -> Mapping[str, object]:
    """An order as JSON can say it."""
    match order:
        case Turn() | Check():
            told: dict[str, object] = {
                "type": "turn" if isinstance(order, Turn) else "check",
                "argv": list(order.argv),
                "cwd": order.cwd,
                "env": list(order.env),
                "given": dict(order.given),
                "limit": order.limit.total_seconds(),
                "grace": order.grace.total_seconds(),
            }
            if isinstance(order, Turn):
                told["prompt"] = order.prompt
                if order.adapter != PROGRAM:
                    told["adapter"] = order.adapter
            return told
        case Halt(target, grace):
            return {"type": "halt", "target": target, "grace": grace.total_seconds()}
        case Steer(text, target, turn):
            return {"type": "steer", "text": text, "target": target, "turn": turn}
        case Reply(target, request, allow, words):
            return {"type": "reply", "target": target, "request": request, "allow": allow, "words": words}
        case ClosePage(identity):
            return {"type": "close", "identity": identity}
        case TakeOver():
            raise NotAnOrder("a tool server is asked from here, never through another executor")
        case _ as never:
            assert_never(never)


def order_of(payload: Mapping[str, object]) -> Order:
    """The order that a payload tells; NotAnOrder for anything that is none."""
    match payload.get("type"):
        case "turn":
            adapter = _text(payload, "adapter") if "adapter" in payload else PROGRAM
            return Turn(prompt=_text(payload, "prompt"), adapter=adapter, **_program(payload))
        case "check":
            return Check(**_program(payload))
        case "halt":
            return Halt(_target(payload), _duration(payload, "grace"))
        case "steer":
            return Steer(_text(payload, "text"), _target(payload), _text(payload, "turn"))
        case "reply":
            if not isinstance(allow := payload.get("allow"), bool):
                raise NotAnOrder("allow is no truth")
            return Reply(_target(payload), _text(payload, "request"), allow, _text(payload, "words"))
        case "close":
            return ClosePage(_text(payload, "identity"))
        case other:
            raise NotAnOrder(f"there is no order of type {str(other)[:64]!r}")


def _target(payload: Mapping[str, object]) -> CommandId:
    target = _text(payload, "target")
    if not SHAPE.fullmatch(target) or not target.startswith("c-"):
        raise NotAnOrder("target names no command")
    return CommandId(target)


def _program(payload: Mapping[str, object]) -> dict[str, Any]:
    given = payload.get("given")
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
        raise NotAnOrder("given holds texts by name")
    return {
        "argv": _texts(payload, "argv"),
        "cwd": _text(payload, "cwd"),
        "env": _texts(payload, "env"),
        "given": dict(given),
        "limit": _duration(payload, "limit"),
        "grace": _duration(payload, "grace"),
    }


def _text(payload: Mapping[str, object], name: str) -> str:
    held = payload.get(name)
    if not isinstance(held, str):
        raise NotAnOrder(f"{name} is no text")
    return held


def _texts(payload: Mapping[str, object], name: str) -> tuple[str, ...]:
    held = payload.get(name)
    if not isinstance(held, list) or not all(isinstance(each, str) for each in held):
        raise NotAnOrder(f"{name} is no list of texts")
    return tuple(held)


def _duration(payload: Mapping[str, object], name: str) -> timedelta:
    held = payload.get(name)
    if isinstance(held, bool) or not isinstance(held, int | float) or not 0 <= held <= 10**9:
        raise NotAnOrder(f"{name} is no number of seconds")
    return timedelta(seconds=held)
