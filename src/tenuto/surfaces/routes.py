"""Where each verb is found over HTTP: one small table without a framework in it.

The server builds its routes from it, the command line its addresses. It says nothing about what a verb takes or who
may use it; that stands in `verbs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

PREFIX = "/api/v1"


@dataclass(frozen=True)
class Route:
    """A method and a path whose `{names}` are parameters of the verb.

    `run_path` is where the same verb takes a whole run: the place called `{task}` there holds a run's name.
    """

    method: str
    path: str
    run_path: str | None = None

    @property
    def reads(self) -> bool:
        """Whether nothing is changed by it."""
        return self.method == "GET"


ROUTES: Mapping[str, Route] = {
    "status": Route("GET", "/status"),
    "whoami": Route("GET", "/whoami"),
    "hold": Route("POST", "/hold"),
    "unhold": Route("POST", "/unhold"),
    "stop": Route("POST", "/stop"),
    "run.create": Route("POST", "/runs"),
    "run.list": Route("GET", "/runs"),
    "run.show": Route("GET", "/runs/{run}"),
    "task.spawn": Route("POST", "/tasks"),
    "task.ready": Route("POST", "/tasks/{task}/ready"),
    "slots": Route("GET", "/slots"),
    "token.list": Route("GET", "/tokens"),
    "token.new": Route("POST", "/tokens"),
    "token.revoke": Route("POST", "/tokens/{token}/revoke"),
    "executor.list": Route("GET", "/executors"),
    "import": Route("POST", "/import"),
    "executor.settle": Route("POST", "/executors/{executor}/settle"),
    "run.coordinate": Route("PUT", "/runs/{run}/coordinator"),
    "task.list": Route("GET", "/tasks"),
    "task.show": Route("GET", "/tasks/{task}"),
    "task.assignment": Route("GET", "/tasks/{task}/assignment"),
    "task.follow": Route("GET", "/tasks/{task}/follow"),
    "task.explain": Route("GET", "/tasks/{task}/explain"),
    "task.pause": Route("POST", "/tasks/{task}/pause", "/runs/{task}/pause"),
    "task.resume": Route("POST", "/tasks/{task}/resume", "/runs/{task}/resume"),
    "task.continue": Route("POST", "/tasks/{task}/continue"),
    "task.cancel": Route("POST", "/tasks/{task}/cancel", "/runs/{task}/cancel"),
    "task.wait": Route("POST", "/tasks/{task}/wait"),
    "task.answer": Route("POST", "/tasks/{task}/answer"),
    "task.complete": Route("POST", "/tasks/{task}/complete"),
    "task.fail": Route("POST", "/tasks/{task}/fail"),
    "task.report": Route("POST", "/tasks/{task}/report"),
    "policy.show": Route("GET", "/tasks/{task}/policy", "/runs/{task}/policy"),
    "policy.set": Route("PUT", "/tasks/{task}/policy", "/runs/{task}/policy"),
    "attention": Route("GET", "/attention"),
    "events": Route("GET", "/events"),
    "message.send": Route("POST", "/tasks/{task}/messages"),
    "message.list": Route("GET", "/tasks/{task}/messages"),
    "checkpoint.request": Route("POST", "/tasks/{task}/checkpoint"),
    "checkpoint.show": Route("GET", "/tasks/{task}/checkpoint"),
    "command.list": Route("GET", "/commands"),
    "command.show": Route("GET", "/commands/{command}"),
    "command.reconcile": Route("POST", "/commands/{command}/reconcile"),
    "command.release": Route("POST", "/commands/{command}/release"),
    "limit.list": Route("GET", "/limits"),
    "limit.lift": Route("POST", "/limits/{limit}/lift"),
    "permission.list": Route("GET", "/tasks/{task}/permissions"),
    "chain.list": Route("GET", "/chains"),
    "chain.start": Route("POST", "/chains"),
    "chain.status": Route("GET", "/chains/{chain}"),
    "chain.next": Route("GET", "/chains/{chain}/next"),
    "chain.advance": Route("POST", "/chains/{chain}/advance"),
    "chain.sweep": Route("GET", "/chains/{chain}/sweep"),
    "chain.stop": Route("POST", "/chains/{chain}/stop"),
    "chain.unit": Route("GET", "/tasks/{task}/chain"),
    "chain.record": Route("POST", "/tasks/{task}/chain/record"),
    "chain.handoff": Route("POST", "/tasks/{task}/chain/handoff"),
    "chain.gates": Route("GET", "/chains/{chain}/gates"),
    "chain.merge": Route("POST", "/chains/{chain}/merge"),
    "chain.self-advancing": Route("POST", "/self-advancing"),
    "review.verdict": Route("POST", "/tasks/{task}/review"),
    "phase.open": Route("POST", "/tasks/{task}/chain/pull"),
    "phase.status": Route("GET", "/chains/{chain}/phases"),
    "worktree.list": Route("GET", "/worktrees"),
    "worktree.remove": Route("POST", "/worktrees/{worktree}/remove"),
    "session.list": Route("GET", "/sessions"),
    "session.adopt": Route("POST", "/sessions"),
    "chat.adopt": Route("POST", "/chats"),
    "hook.tell": Route("POST", "/hooks"),
    "observe.list": Route("GET", "/tasks/{task}/evidence"),
    "observe.import": Route("POST", "/tasks/{task}/evidence"),
    "reconcile": Route("POST", "/tasks/{task}/reconcile"),
    "dispatch.plan": Route("GET", "/tasks/{task}/dispatch"),
    "dispatch.execute": Route("POST", "/tasks/{task}/dispatch"),
    "orchestrate": Route("GET", "/orchestrate"),
    "tool.list": Route("GET", "/tools"),
    "tool.bind": Route("POST", "/tasks/{task}/tools"),
    "tool.unbind": Route("POST", "/tasks/{task}/tools/unbind"),
    "page.list": Route("GET", "/pages"),
    "page.watch": Route("POST", "/tasks/{task}/pages"),
    "page.unwatch": Route("POST", "/tasks/{task}/pages/unwatch"),
    "job.list": Route("GET", "/tasks/{task}/jobs"),
    "job.mark-service": Route("POST", "/tasks/{task}/jobs/mark-service"),
    "lease.list": Route("GET", "/tasks/{task}/lease"),
    "lease.register": Route("POST", "/tasks/{task}/lease/register"),
    "lease.claim": Route("POST", "/tasks/{task}/lease/claim"),
    "lease.heartbeat": Route("POST", "/tasks/{task}/lease/heartbeat"),
    "lease.handoff": Route("POST", "/tasks/{task}/lease/handoff"),
    "lease.takeover": Route("POST", "/tasks/{task}/lease/takeover"),
    "lease.abandon": Route("POST", "/tasks/{task}/lease/abandon"),
}


def address(verb: str, params: Mapping[str, object]) -> tuple[str, str, dict[str, object]]:
    """The method, the path with its names filled in, and the parameters that are left for the query or the body.

    Raises KeyError for a verb or a name of the path that is missing.
    """
    route = ROUTES[verb]
    parts: list[str] = []
    used: set[str] = set()
    for part in route.path.split("/"):
        if part.startswith("{"):
            name = part.strip("{}")
            used.add(name)
            parts.append(quote(str(params[name]), safe=""))
        else:
            parts.append(part)
    return route.method, PREFIX + "/".join(parts), {name: value for name, value in params.items() if name not in used}
