"""One request of MCP over streamable HTTP, from its first byte to its last.

Each request is served alone: no session is kept, so a client goes on after the supervisor was restarted, a session
cannot be taken over with another token, and nothing is left in memory between two requests. Host, origin, size and
token were looked at by the guard, and are not looked at again here.
"""

from __future__ import annotations

import logging
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

# The library tells of every session's beginning and end; here every request would be one.
logging.getLogger("mcp").setLevel(logging.WARNING)


async def exchange(server: Server[Any], scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request with this server, and end everything that the answer needed."""
    manager = StreamableHTTPSessionManager(server, stateless=True)
    async with manager.run():
        await manager.handle_request(scope, receive, send)
