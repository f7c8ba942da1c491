"""The few addresses a browser needs to come in: a page, its script, the exchange of a code, and who is logged in.

The page holds no secret and names nobody; the code stands behind the `#` of its address, which a browser does not send.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from fastapi import Request, Response
from starlette.applications import Starlette

from tenuto.engine.desk import Caller
from tenuto.model.faults import Mistake, NotAllowed
from tenuto.model.snapshot import Role
from tenuto.surfaces.http.guard import CALLER, SESSION
from tenuto.surfaces.http.sessions import CODE_LIFE, COOKIE, SESSION_LIFE, Sessions

POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Tenuto: log in</title>
<h1>Tenuto</h1>
<p id="said" role="status">Looking who is logged in here.</p>
<script src="/login.js"></script>
</html>
"""
SCRIPT = """"use strict";
const said = document.getElementById("said");
async function who() {
  const answer = await fetch("/session", { credentials: "same-origin" });
  const told = answer.ok ? await answer.json() : null;
  said.textContent = told ? `Logged in as ${told.name} (${told.role}).`
    : "Nobody is logged in. Ask for a link with: tenuto login";
}
async function come() {
  const code = location.hash.slice(1);
  if (!code) return who();
  history.replaceState(null, "", "/login");
  const answer = await fetch("/login", {
    method: "POST", credentials: "same-origin",
    headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }),
  });
  if (answer.ok) return who();
  said.textContent = "That link was used, or is too old. Ask for another with: tenuto login";
}
come();
"""
LONGEST = 200


class Login:
    """Puts the addresses of logging in on an application. `base` is where a browser finds them; `told` tells faults."""

    def __init__(
        self, sessions: Sessions, told: Callable[[BaseException], Response], base: str | None, *, secure: bool
    ) -> None:
        self._base = base
        self._sessions = sessions
        self._told = told
        self._secure = secure

    def on(self, app: Starlette) -> None:
        """Add the routes."""
        add = app.router.add_route
        add("/login", self._page, methods=["GET"], include_in_schema=False)
        add("/login", self._come, methods=["POST"], include_in_schema=False)
        add("/login.js", self._script, methods=["GET"], include_in_schema=False)
        add("/login/link", self._link, methods=["POST"], include_in_schema=False)
        add("/logout", self._leave, methods=["POST"], include_in_schema=False)
        add("/session", self._who, methods=["GET"], include_in_schema=False)

    async def _page(self, request: Request) -> Response:
        return Response(PAGE, 200, HEADERS, "text/html; charset=utf-8")

    async def _script(self, request: Request) -> Response:
        return Response(SCRIPT, 200, HEADERS, "text/javascript; charset=utf-8")

    async def _link(self, request: Request) -> Response:
        caller: Caller = request.scope[CALLER]
        if caller.role is not Role.OPERATOR or request.scope.get(SESSION) is not None:
            return self._told(NotAllowed("only the operator's token asks for a link"))
        if self._base is None:
            return _json({"link": None})
        return _json({"link": f"{self._base}/login#{self._sessions.code(caller)}", "seconds": int(CODE_LIFE)})

    async def _come(self, request: Request) -> Response:
        try:
            given = json.loads(await request.body())
            code = given["code"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return self._told(Mistake("a code is needed", field="code"))
        found = self._sessions.redeem(code) if isinstance(code, str) and 0 < len(code) <= LONGEST else None
        if found is None:
            return self._told(NotAllowed("this code opens nothing (any more)"))
        value, session = found
        answer = _json({"name": session.caller.name, "role": session.caller.role.value, "csrf": session.csrf})
        answer.set_cookie(
            COOKIE, value, max_age=int(SESSION_LIFE), path="/", httponly=True, samesite="strict", secure=self._secure
        )
        return answer

    async def _leave(self, request: Request) -> Response:
        cookie = request.headers.get("cookie")
        self._sessions.end(None if cookie is None else cookie.encode("latin-1"))
        answer = _json({"left": True})
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict", secure=self._secure)
        return answer

    async def _who(self, request: Request) -> Response:
        caller: Caller = request.scope[CALLER]
        session = request.scope.get(SESSION)
        said = {"name": caller.name, "role": caller.role.value, "csrf": session.csrf if session is not None else None}
        return _json(said)


def _json(value: dict[str, object]) -> Response:
    return Response(json.dumps(value), 200, HEADERS, "application/json")
