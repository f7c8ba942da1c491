"""An MCP server for one caller: the tools, resources and prompts that its token opens, and nothing it does not.

A tool that the caller may not use does not exist for it. A verb's refusal is a tool's result marked as an error, so
that an agent reads it and can do better; only what is not of the protocol is a protocol error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from tenuto import __version__
from tenuto.model.faults import Mistake
from tenuto.prompts import skills
from tenuto.surfaces import present
from tenuto.surfaces.mcp import tools
from tenuto.surfaces.mcp.ways import Told, Way, Who

INSTRUCTIONS = (
    "These tools say how the work of a long-running task stands. What you say here outlives this conversation. "
    "Read the assignment, report what has become durable, and end with a claim, a wait or nothing: the task is "
    "continued until it is done."
)
ASSIGNMENT = "tenuto://tasks/{task}/assignment"
OVERVIEW = "tenuto://runs/{run}/overview"
RUNS = 50
"""Most runs that are listed as resources."""

_URI = re.compile(
    r"tenuto://(?:tasks/(?P<task>[0-9A-Za-z-]{4,40})/assignment|runs/(?P<run>[0-9A-Za-z-]{4,40})/overview)"
)
Context = Any  # what the library hands to each handler; nothing of it is used here
Page = types.PaginatedRequestParams | None


def make_server(way: Way) -> Server[Any]:
    """A server whose every answer comes by this way."""
    handlers = _Handlers(way)
    return Server(
        "tenuto",
        version=__version__,
        title="Tenuto",
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )


class _Handlers:
    """What is answered to each request of the protocol."""

    def __init__(self, way: Way) -> None:
        self._way = way

    async def list_tools(self, _context: Context, _page: Page) -> types.ListToolsResult:
        who = await self._who()
        return types.ListToolsResult(tools=[_tool(tool, who) for tool in tools.visible(who.verbs)])

    async def call_tool(self, _context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        who = await self._who()
        tool = tools.TOOLS.get(params.name)
        if tool is None or tool.verb not in who.verbs:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:64]}")
        try:
            asked, key = tool.asked(params.arguments or {}, who.task, who.run)
            return _result(tool.told(await self._way.ask(tool.verb, asked, key)))
        except Mistake as mistake:
            return _result(present.error(mistake), failed=True)
        except Told as told:
            return _result(told.said, failed=True)

    async def list_resources(self, _context: Context, _page: Page) -> types.ListResourcesResult:
        who = await self._who()
        found: list[types.Resource] = []
        if who.task is not None:
            found.append(_assignment(who.task))
        if "run.show" in who.verbs:
            runs = [who.run] if who.run is not None else await self._runs(who)
            found += [_overview(run) for run in runs]
        return types.ListResourcesResult(resources=found)

    async def list_templates(self, _context: Context, _page: Page) -> types.ListResourceTemplatesResult:
        who = await self._who()
        found = []
        if "task.assignment" in who.verbs:
            about = _assignment("{task}")
            found.append(_template(about, ASSIGNMENT))
        if "run.show" in who.verbs:
            about = _overview("{run}")
            found.append(_template(about, OVERVIEW))
        return types.ListResourceTemplatesResult(resource_templates=found)

    async def read_resource(
        self, _context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        found = _URI.fullmatch(uri)
        if found is None:
            raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri[:200]})
        if found["task"] is not None:
            said = await self._asked("task.assignment", {"task": found["task"]})
            return _contents(uri, "text/markdown", said["objective"] or "")
        said = await self._asked("run.show", {"run": found["run"]})
        return _contents(uri, "application/json", _json(tools.TOOLS["run_status"].told(said)))

    async def list_prompts(self, _context: Context, _page: Page) -> types.ListPromptsResult:
        found = skills.skills().values()
        return types.ListPromptsResult(
            prompts=[types.Prompt(name=skill.name, description=skill.description) for skill in found]
        )

    async def get_prompt(self, _context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        skill = skills.skills().get(params.name)
        if skill is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name[:64]}")
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=skill.body))
        return types.GetPromptResult(description=skill.description, messages=[message])

    async def _who(self) -> Who:
        try:
            return await self._way.who()
        except Told as told:
            raise _error(told) from None

    async def _asked(self, verb: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if verb not in (await self._who()).verbs:
            raise MCPError(types.INVALID_PARAMS, "Resource not found")
        try:
            return await self._way.ask(verb, params, None)
        except Told as told:
            raise _error(told) from None

    async def _runs(self, who: Who) -> list[str]:
        if "run.list" not in who.verbs:
            return []
        said = await self._asked("run.list", {"unfinished": True})
        return [run["id"] for run in said["runs"][:RUNS]]


def _error(told: Told) -> MCPError:
    """A verb's refusal where the protocol has no place for it in a result: the whole shape is in the data."""
    return MCPError(types.INVALID_PARAMS, str(told), told.said["error"])


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _result(value: Mapping[str, Any], *, failed: bool = False) -> types.CallToolResult:
    """A tool's result: the same as text and as structure, since programs differ in which of them they show."""
    content = types.TextContent(type="text", text=_json(value))
    return types.CallToolResult(content=[content], structured_content=dict(value), is_error=failed)


def _tool(tool: tools.Tool, who: Who) -> types.Tool:
    changes = tool.of.mutates
    hints = types.ToolAnnotations(
        title=tool.title,
        read_only_hint=not changes,
        destructive_hint=tool.name == "task_fail",
        idempotent_hint=True,
        open_world_hint=False,
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.schema(who.role),
        annotations=hints,
    )


def _assignment(task: str) -> types.Resource:
    return types.Resource(
        uri=ASSIGNMENT.format(task=task),
        name="assignment",
        title="The assignment",
        description="What the task is to do, as it was given.",
        mime_type="text/markdown",
    )


def _overview(run: str) -> types.Resource:
    return types.Resource(
        uri=OVERVIEW.format(run=run),
        name="overview",
        title="The run's overview",
        description="The tasks of the run and how each stands.",
        mime_type="application/json",
    )


def _template(about: types.Resource, uri: str) -> types.ResourceTemplate:
    return types.ResourceTemplate(
        uri_template=uri,
        name=about.name,
        title=about.title,
        description=about.description,
        mime_type=about.mime_type,
    )


def _contents(uri: str, kind: str, text: str) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)])
