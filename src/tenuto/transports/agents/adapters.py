"""Which agent programs are known by name: how each is started, what it speaks, and which variables it may be given.

The variables hold credentials and addresses: they are handed on by name where they are set, never kept, shown, or put
into an order. What is not named here reaches a program only where the task names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tenuto.transports.agents.acp import Acp
from tenuto.transports.agents.channel import Make
from tenuto.transports.agents.claude import Claude
from tenuto.transports.agents.codex import Codex


@dataclass(frozen=True)
class Adapter:
    """One program: its words where none are given, its channel, whether a turn under way takes words, its variables."""

    name: str
    argv: tuple[str, ...]
    make: Make
    steers: bool
    env: tuple[str, ...]


ADAPTERS: Final[Mapping[str, Adapter]] = {
    one.name: one
    for one in (
        Adapter(
            "claude",
            ("claude",),
            Claude,
            True,
            (
                "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL",
                "ANTHROPIC_SMALL_FAST_MODEL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX",
                "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "DISABLE_TELEMETRY",
                "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY",
            ),
        ),
        Adapter(
            "codex",
            ("codex",),
            Codex,
            True,
            (
                "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "CODEX_API_KEY", "CODEX_HOME",
                "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY",
            ),
        ),
        Adapter(
            "gemini",
            ("gemini", "--acp"),
            Acp,
            False,
            (
                "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_GEMINI_BASE_URL",
                "GEMINI_CLI_TRUST_WORKSPACE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY",
            ),
        ),
        Adapter(
            "opencode",
            ("opencode", "acp"),
            Acp,
            False,
            ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENCODE_CONFIG", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"),
        ),
        Adapter("acp", (), Acp, False, ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")),
    )
}  # fmt: skip
