"""Which agent programs are known by name: how each is started, what it speaks, and which variables it may be given.

The variables hold credentials and addresses: they are handed on by name where they are set, never kept, shown, or put
into an order. What is not named here reaches a program only where the task names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from tenuto.transports.agents.acp import Acp
from tenuto.transports.agents.channel import Make
from tenuto.transports.agents.claude import Claude
from tenuto.transports.agents.codex import Codex
from tenuto.transports.agents.gemini import Gemini
from tenuto.transports.agents.pi import Pi

KEEPS_SESSIONS: Final = Path(__file__).with_name("gemini-defaults.json")
"""Defaults under whatever the user has set: Gemini CLI takes what it writes down of a session that is gone on with for
a session without words, and would delete all of it with the next start in that directory."""


@dataclass(frozen=True)
class Adapter:
    """One program: its words where none are given, its channel, whether a turn under way takes words, its variables.

    `unless_set` are values of our own for variables that nobody has set; none where `yields_to`, a file of the system,
    is there. `keeps_records`: its sessions can be looked up on the disk before they are gone on with. `can` says for
    people what of it is driven, `tried` the versions that this was tried with.
    """

    name: str
    argv: tuple[str, ...]
    make: Make
    steers: bool
    env: tuple[str, ...]
    keeps_records: bool = False
    can: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    unless_set: Mapping[str, str] = field(default_factory=dict)
    yields_to: str = ""

    @property
    def own_values(self) -> Mapping[str, str]:
        """The values of our own that a program gets now, under those that are set."""
        return {} if self.yields_to and Path(self.yields_to).exists() else self.unless_set


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
            keeps_records=True,
            can=("resume", "steer", "interrupt", "permission", "limits", "cost", "adopt", "hooks"),
            tried=("2.1.197", "2.1.332"),
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
            keeps_records=True,
            can=("resume", "steer", "interrupt", "permission", "limits", "tokens", "adopt", "hooks"),
            tried=("0.171.0",),
        ),
        Adapter(
            "gemini",
            ("gemini",),
            Gemini,
            False,
            (
                "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_GEMINI_BASE_URL",
                "GEMINI_CLI_TRUST_WORKSPACE", "GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
                "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY",
            ),
            unless_set={"GEMINI_CLI_SYSTEM_DEFAULTS_PATH": str(KEEPS_SESSIONS)},
            yields_to="/etc/gemini-cli/system-defaults.json",
            can=("resume", "interrupt", "tokens"),
            tried=("0.61.0",),
        ),
        Adapter(
            "opencode",
            ("opencode", "acp"),
            Acp,
            False,
            ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENCODE_CONFIG", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"),
            can=("resume", "interrupt", "permission", "tokens"),
            tried=("1.18.33",),
        ),
        Adapter(
            "pi",
            ("pi",),
            Pi,
            True,
            (
                "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "MISTRAL_API_KEY",
                "GROQ_API_KEY", "DEEPSEEK_API_KEY", "XAI_API_KEY", "PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR",
                "PI_OFFLINE", "PI_SKIP_VERSION_CHECK", "PI_TELEMETRY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY",
            ),
            can=("resume", "steer", "interrupt", "tokens", "cost"),
            tried=("0.73.1",),
        ),
        Adapter(
            "acp",
            (),
            partial(Acp, quiet=0.2),
            False,
            ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"),
            can=("resume", "interrupt", "permission"),
        ),
    )
}  # fmt: skip
