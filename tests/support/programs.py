"""The agent programs of others, as tests start them: against a scripted model, in a home of their own.

Each is set up by files in a temporary home and a short environment, so that nothing of the machine's own user is read
or changed. The programs are installed by `scripts/prepare test`; where they are missing a test fails and says so.
"""

from __future__ import annotations

import json
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NODE_MODULES = Path(__file__).parent.parent / "node" / "node_modules"
NODE = Path(sysconfig.get_path("scripts"))
"""Where node lies, beside the Python that runs the tests."""

PASSED = ("TENUTO_TOKEN", "TENUTO_API", "TENUTO_TASK", "TENUTO_SPOOL", "TENUTO_HOME")
"""The variables of a turn that a program hands to the MCP server it starts."""

Json = dict[str, Any]


def installed(pattern: str) -> Path:
    """A file below node_modules; fails when it is not there, or not once."""
    found = sorted(NODE_MODULES.glob(pattern))
    assert len(found) == 1, (
        f"{pattern} is there {len(found)} times below {NODE_MODULES}; run: source scripts/prepare test"
    )
    return found[0]


def path() -> str:
    """A PATH with our node and the system's ordinary programs."""
    return f"{NODE}:/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Program:
    """A program ready to be run once: it reads its prompt from standard input."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Server:
    """The MCP server that a program is told of: a command, or an address that takes the turn's token."""

    command: tuple[str, ...] = ()
    url: str = ""


def claude(home: Path, model: str, server: Server) -> Program:
    """Claude Code in print mode, with this server and no other, allowed to use its tools."""
    home.mkdir(exist_ok=True)
    about: Json
    if server.url:
        about = {"type": "http", "url": server.url, "headers": {"Authorization": "Bearer ${TENUTO_TOKEN}"}}
    else:
        first, *rest = server.command
        about = {"type": "stdio", "command": first, "args": rest, "env": {name: f"${{{name}}}" for name in PASSED}}
    config = home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"tenuto": about}}), "utf-8")
    tools = "mcp__tenuto,ListMcpResourcesTool,ReadMcpResourceTool"
    argv = (
        str(installed("@anthropic-ai/claude-code-*/claude")),
        "-p",
        *("--output-format", "stream-json", "--verbose"),
        *("--mcp-config", str(config), "--strict-mcp-config"),
        *("--allowedTools", tools),
    )
    environment = {
        "PATH": path(),
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": model,
        "ANTHROPIC_API_KEY": "no-key",
        "ANTHROPIC_MODEL": "scripted",
        "ANTHROPIC_SMALL_FAST_MODEL": "scripted-small",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "ENABLE_TOOL_SEARCH": "false",
        "MCP_TIMEOUT": "30000",
    }
    return Program(argv, environment)


def codex(home: Path, model: str, server: Server) -> Program:
    """Codex in exec mode, with this server, which it waits for before the first turn."""
    folder = home / ".codex"
    folder.mkdir(parents=True, exist_ok=True)
    if server.url:
        about = [f"url = {_toml(server.url)}", 'bearer_token_env_var = "TENUTO_TOKEN"']
    else:
        first, *rest = server.command
        about = [f"command = {_toml(first)}", f"args = {_toml(rest)}", f"env_vars = {_toml(PASSED)}"]
    lines = [
        'model = "scripted"',
        'model_provider = "scripted"',
        "[model_providers.scripted]",
        'name = "scripted"',
        f"base_url = {_toml(model + '/v1')}",
        'wire_api = "responses"',
        'env_key = "SCRIPTED_KEY"',
        "supports_websockets = false",
        "[mcp_servers.tenuto]",
        *about,
        "required = true",
        "startup_timeout_sec = 30",
        'default_tools_approval_mode = "approve"',
    ]
    (folder / "config.toml").write_text("\n".join(lines) + "\n", "utf-8")
    argv = (str(installed("@openai/codex-*/vendor/*/bin/codex")), "exec", "--json", "--skip-git-repo-check", "-")
    return Program(argv, {"PATH": path(), "HOME": str(home), "SCRIPTED_KEY": "no-key"})


def gemini(home: Path, model: str) -> Program:
    """Gemini CLI, with a home of its own, that uses its tools unasked."""
    folder = home / ".gemini"
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
    }
    (folder / "settings.json").write_text(json.dumps(settings), "utf-8")
    argv = (str(NODE / "node"), str(installed("@google/gemini-cli/bundle/gemini.js")), "-m", "gemini-2.5-flash")
    environment = {
        "PATH": path(),
        "HOME": str(home),
        "GEMINI_API_KEY": "no-key",
        "GOOGLE_GEMINI_BASE_URL": model,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    return Program((*argv, "--approval-mode", "yolo"), environment)


def opencode(home: Path, model: str) -> Program:
    """opencode over ACP, with a home of its own, that uses its tools unasked and fetches nothing."""
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    one = {"name": "scripted", "tool_call": True, "limit": {"context": 100_000, "output": 10_000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{model}/v1", "apiKey": "no-key"},
        "models": {"scripted": one},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "provider": {"scripted": provider},
        "permission": {"*": "allow"},
    }
    (folder / "opencode.json").write_text(json.dumps(settings), "utf-8")
    return Program((str(installed("opencode-*/bin/opencode")), "acp"), {"PATH": path(), "HOME": str(home)})


def pi(home: Path, model: str) -> Program:
    """pi, with a home of its own, that uses its tools unasked and tries its service once."""
    folder = home / ".pi" / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    one = {"id": "scripted", "contextWindow": 100_000, "maxTokens": 10_000}
    provider = {"baseUrl": f"{model}/v1", "api": "openai-completions", "apiKey": "no-key", "models": [one]}
    settings = {"defaultProvider": "scripted", "defaultModel": "scripted", "retry": {"enabled": False}}
    (folder / "models.json").write_text(json.dumps({"providers": {"scripted": provider}}), "utf-8")
    (folder / "settings.json").write_text(json.dumps(settings), "utf-8")
    argv = (str(NODE / "node"), str(installed("@mariozechner/pi-coding-agent/dist/cli.js")))
    return Program(argv, {"PATH": path(), "HOME": str(home), "PI_OFFLINE": "1"})


def wrapped(program: Program, folder: Path) -> str:
    """A command line for `tenuto run` that becomes the program: what it prints goes to files of `folder`.

    Of the turn's own environment only the variables of PASSED are kept.
    """
    folder.mkdir(exist_ok=True)
    script = folder / "become.py"
    script.write_text(
        "import os\n"
        f"argv, environment = {program.argv!r}, {dict(program.environment)!r}\n"
        f"environment |= {{name: os.environ[name] for name in {PASSED!r} if name in os.environ}}\n"
        "for number, name in ((1, 'out'), (2, 'err')):\n"
        f"    place = os.path.join({str(folder)!r}, name)\n"
        "    os.dup2(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)\n"
        "os.execve(argv[0], argv, environment)\n",
        "utf-8",
    )
    return f"{sys.executable} {script}"


def _toml(value: str | Sequence[str]) -> str:
    """A string or list of strings as TOML; JSON's form of both is TOML's too."""
    return json.dumps(value if isinstance(value, str) else list(value))
