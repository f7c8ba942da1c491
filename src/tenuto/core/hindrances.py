"""Which words of which program mean that it cannot go on, and what hinders it: a table, and nothing beside it.

A row matches by the program's own code of the failure, and where that code is used for several things by its text as
well: a text alone is never enough, for an agent may say anything. The first row that matches counts; a failure that
none matches is the agent's own. Each row names the versions whose recordings it was read from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tenuto.model.evidence import Hindrance

LIMIT, OVERLOAD, CONTEXT, LOGIN = Hindrance.LIMIT, Hindrance.OVERLOAD, Hindrance.CONTEXT, Hindrance.LOGIN

ANY: Final = ".*"


@dataclass(frozen=True)
class Detector:
    """A failure of `program` whose code is one of `codes` and whose text holds `text` (a pattern, in any case)."""

    program: str
    by: Hindrance
    codes: frozenset[str]
    text: str
    versions: tuple[str, ...]


def _row(program: str, by: Hindrance, codes: str, text: str, *versions: str) -> Detector:
    return Detector(program, by, frozenset(codes.split()), text, versions)


CLAUDE: Final = ("2.1.197", "2.1.332")
CODEX: Final = ("0.171.0",)
GEMINI: Final = ("0.61.0",)
PI: Final = ("0.73.1",)

DETECTORS: Final[Sequence[Detector]] = (
    _row("claude", LIMIT, "usage_limit_reached", ANY, "2.1.332"),
    _row("claude", LIMIT, "rate_limit", r"hit your|limit reached|usage limit|out of extra usage", *CLAUDE),
    _row("claude", OVERLOAD, "rate_limit server_error overloaded overloaded_error api_error", ANY, *CLAUDE),
    _row("claude", OVERLOAD, "unknown", r"API Error: (429|5\d\d)|overloaded|timed out|Connection error", *CLAUDE),
    _row("claude", CONTEXT, "invalid_request prompt_too_long", r"prompt is too long|context (window|limit)", *CLAUDE),
    _row("claude", LOGIN, "authentication_failed billing_error oauth_org_not_allowed", ANY, *CLAUDE),
    _row("codex", LIMIT, "usageLimitExceeded", ANY, *CODEX),
    _row("codex", CONTEXT, "contextWindowExceeded", ANY, *CODEX),
    _row("codex", OVERLOAD, "serverOverloaded responseTooManyFailedAttempts internalServerError", ANY, *CODEX),
    _row(
        "codex",
        OVERLOAD,
        "httpConnectionFailed responseStreamConnectionFailed responseStreamDisconnected",
        ANY,
        *CODEX,
    ),
    _row("codex", LOGIN, "unauthorized", ANY, *CODEX),
    _row("gemini", OVERLOAD, "unknown error", r"overloaded|UNAVAILABLE|\b(429|5\d\d)\b", *GEMINI),
    _row("pi", OVERLOAD, "error", r"overloaded|unavailable|^(429|5\d\d)\b|rate limit|Connection error", *PI),
    _row("pi", CONTEXT, "error", r"context (window|length|limit)|prompt is too long", *PI),
    _row("pi", LOGIN, "error", r"^401\b|No API key|invalid api key", *PI),
    _row("acp", LOGIN, "-32000", r"auth|log ?in|sign ?in", "1"),
    _row("acp", LIMIT, "429 -32603 500", r"(quota|usage limit|exhausted)(.|\n)*(reset|retry|try again)", "1"),
    _row("acp", OVERLOAD, "429 500 502 503 504 529", ANY, "1"),
    _row("acp", OVERLOAD, "-32603", r"overloaded|unavailable|rate limit|\b(429|503|529)\b", "1"),
    _row("acp", CONTEXT, "-32603 400", r"context (window|length|limit)|too many tokens|prompt is too long", "1"),
)
"""In the order in which they are tried."""


def of(program: str, codes: Sequence[str], text: str) -> Hindrance | None:
    """What hinders a program that failed with any of these codes and this text; None for a failure of its own."""
    known = set(codes)
    for row in DETECTORS:
        if row.program == program and row.codes & known and re.search(row.text, text, re.IGNORECASE):
            return row.by
    return None


MODELS: Final = {"seven_day_opus": "opus", "seven_day_sonnet": "sonnet"}
"""Limits that are for one family of models, by the name the service gives them; every other is the account's."""


def model_of(name: str | None) -> str | None:
    """The part of a model's name that a limit is for; None: every model of the account."""
    return MODELS.get(name or "")
