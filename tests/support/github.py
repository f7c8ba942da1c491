"""A played GitHub on loopback: repositories, issues and pull requests in memory, told in GitHub's own words.

Every answer begins as GitHub's own example of it and is judged by GitHub's own description, as is every question. It
can fail as GitHub fails: limits of both kinds, errors of the server, silence before and after a write, and a connection
that breaks. It counts what took effect.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support import described

TOKEN = "ghp_played-token-0123456789"
WHEN = "2026-03-01T12:00:00Z"


class NoAnswer(Exception):
    """The connection ends without an answer."""


@dataclass
class Fault:
    """What goes wrong with the next `times` requests that fit; `after` the request took effect, or instead of it."""

    method: str
    path: str
    kind: str
    times: int = 1
    after: bool = False


@dataclass
class Repo:
    """One repository."""

    name: str = "some/where"
    former: str | None = None
    id: int = 1296269
    default: str = "main"
    renamed: dict[str, str] = field(default_factory=dict)
    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    comments: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=lambda: {"main": "a" * 40})
    messages: dict[str, str] = field(default_factory=dict)
    checks: dict[str, list[tuple[str, str | None]]] = field(default_factory=dict)
    statuses: dict[str, list[str]] = field(default_factory=dict)


class PlayedGitHub:
    """The server. `url` is its API's address; `wrong` everything that did not fit the description."""

    def __init__(self) -> None:
        self.repo = Repo()
        self.me = "tenuto-bot"
        self.faults: list[Fault] = []
        self.seen: list[tuple[str, str]] = []
        self.effects: list[tuple[str, str]] = []
        self.wrong: list[str] = []
        self.stale_search: dict[int, dict[str, Any]] = {}
        self.page = 100
        self.quiet = threading.Event()
        self.lock = threading.RLock()
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @contextmanager
    def serving(self) -> Iterator[PlayedGitHub]:
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.quiet.set()
            self.server.shutdown()
            self.server.server_close()
            thread.join(10)

    # -- what a test makes

    def issue(self, number: int, *labels: str, **more: Any) -> dict[str, Any]:
        row: dict[str, Any] = described.example("issue")
        row |= {
            "number": number, "id": number, "title": f"Unit {number}", "state": "open", "state_reason": None,
            "labels": [self.label(name) for name in labels], "closed_at": None, "body": "Do it", "updated_at": WHEN,
            "html_url": f"https://github.example/{self.repo.name}/issues/{number}",
            "repository_url": f"https://api.github.example/repos/{self.repo.name}", "pull_request": None,
        }  # fmt: skip
        row.pop("pull_request")
        row |= more
        self.repo.issues[number] = row
        return row

    @staticmethod
    def label(name: str) -> dict[str, Any]:
        row: dict[str, Any] = described.example("label-items")
        return row | {"name": name, "id": sum(name.encode())}

    def comment(self, number: int, body: str, login: str = "tenuto-bot", association: str = "NONE") -> dict[str, Any]:
        row: dict[str, Any] = described.example("issue-comment")
        row |= {"body": body, "author_association": association, "id": 1000 + len(self.effects)}
        row["user"] = row["user"] | {"login": login}
        self.repo.comments.setdefault(number, []).append(row)
        return row

    def pull(self, number: int, branch: str, head: str, body: str = "", **more: Any) -> dict[str, Any]:
        row: dict[str, Any] = described.example("pull-request")
        here = {"id": self.repo.id, "full_name": self.repo.name}
        row |= {
            "number": number, "id": number, "state": "open", "merged": False, "merged_at": None, "draft": False,
            "merge_commit_sha": None, "body": body, "title": f"Pull {number}", "mergeable": True, "closed_at": None,
            "requested_teams": [],
            "html_url": f"https://github.example/{self.repo.name}/pull/{number}", "author_association": "MEMBER",
        }  # fmt: skip
        row["head"] = row["head"] | {"ref": branch, "sha": head, "repo": row["head"]["repo"] | here}
        row["base"] = row["base"] | {"ref": self.repo.default, "repo": row["base"]["repo"] | here}
        row |= more
        self.repo.pulls[number] = row
        self.repo.branches.setdefault(branch, head)
        return row

    def fork(self, number: int) -> None:
        """That pull request comes from another repository."""
        there = self.repo.pulls[number]["head"]
        there["repo"] = there["repo"] | {"id": 99, "full_name": "stranger/where"}

    def merged(self, number: int, sha: str, message: str = "merged by hand") -> None:
        """That pull request is merged, by whom ever."""
        row = self.repo.pulls[number]
        row |= {"state": "closed", "merged": True, "merged_at": WHEN, "closed_at": WHEN, "merge_commit_sha": sha}
        self.repo.messages[sha] = message

    def fail(self, method: str, path: str, kind: str, times: int = 1, *, after: bool = False) -> None:
        """The next requests that fit go wrong: a status, `limited`, `secondary`, `said`, `silence` or `broken`."""
        self.faults.append(Fault(method, path, kind, times, after))

    def took_effect(self, method: str, path: str) -> int:
        return sum(one[0] == method and re.search(path, one[1]) is not None for one in self.effects)

    # -- what it answers

    def fault(self, method: str, path: str, *, after: bool) -> Fault | None:
        for one in self.faults:
            if one.after is after and one.times > 0 and one.method == method and re.search(one.path, path):
                one.times -= 1
                return one
        return None

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        root = f"/repos/{self.repo.name}"
        if path == "/user":
            return 200, described.example("private-user-response-with-public-and-private-profile-information") | {
                "login": self.me
            }
        if path == "/search/issues":
            return self._search(query)
        if path.startswith(f"/repositories/{self.repo.id}"):
            path = root + path.removeprefix(f"/repositories/{self.repo.id}")
        if self.repo.former is not None and path.startswith(f"/repos/{self.repo.former}"):
            rest = path.removeprefix(f"/repos/{self.repo.former}")
            return 301, {"message": "Moved Permanently", "url": f"{self.url}/repositories/{self.repo.id}{rest}",
                         "documentation_url": "https://docs.example"}  # fmt: skip
        if not path.startswith(root):
            return self._gone()
        for pattern, does in self._routes():
            found = re.fullmatch(pattern, f"{method} {path.removeprefix(root)}")
            if found is not None:
                return does(*map(unquote, found.groups()), query, body)
        return self._gone()

    def _routes(self) -> tuple[tuple[str, Callable[..., tuple[int, Any]]], ...]:
        return (
            (r"GET ", self._about),
            (r"GET /issues", self._issues),
            (r"GET /issues/(\d+)", self._one_issue),
            (r"PATCH /issues/(\d+)", self._change_issue),
            (r"GET /issues/(\d+)/comments", self._comments),
            (r"POST /issues/(\d+)/comments", self._say),
            (r"POST /issues/(\d+)/labels", self._add_labels),
            (r"DELETE /issues/(\d+)/labels/(.+)", self._take_label),
            (r"GET /pulls", self._pulls),
            (r"GET /pulls/(\d+)", self._one_pull),
            (r"PUT /pulls/(\d+)/merge", self._merge),
            (r"GET /commits/([^/]+)", self._commit),
            (r"GET /commits/([^/]+)/check-runs", self._runs),
            (r"GET /commits/([^/]+)/status", self._status),
            (r"GET /git/matching-refs/(.+)", self._refs),
            (r"GET /branches/(.+)", self._branch),
        )

    @staticmethod
    def _gone(why: str = "Not Found", status: int = 404) -> tuple[int, Any]:
        return status, {"message": why, "documentation_url": "https://docs.example", "status": str(status)}

    def _about(self, query: Any, body: Any) -> tuple[int, Any]:
        row = described.example("full-repository-default-response")
        owner = self.repo.name.partition("/")[0]
        row |= {"id": self.repo.id, "full_name": self.repo.name, "default_branch": self.repo.default}
        row["owner"] = row["owner"] | {"login": owner}
        row["language"] = None
        for name in ("source", "parent", "template_repository"):
            row.pop(name, None)
        return 200, row

    def _issues(self, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        wanted = set(query.get("labels", [""])[0].split(","))
        rows = [row for row in self.repo.issues.values() if wanted <= {label["name"] for label in row["labels"]}]
        links = dict.fromkeys(("url", "html_url", "diff_url", "patch_url"), "https://github.example/x")
        for number, pull in self.repo.pulls.items():
            if "listed as an issue" in pull["body"]:
                rows.append(next(iter(self.repo.issues.values())) | {"number": number, "pull_request": links})
        return 200, rows

    def _one_issue(self, number: str, query: Any, body: Any) -> tuple[int, Any]:
        row = self.repo.issues.get(int(number))
        return (200, row) if row is not None else self._gone("This issue was deleted", 410)

    def _change_issue(self, number: str, query: Any, body: Any) -> tuple[int, Any]:
        row = self.repo.issues[int(number)]
        row |= {key: body[key] for key in ("state", "state_reason") if key in body}
        row["closed_at"] = WHEN if row["state"] == "closed" else None
        return 200, row

    def _comments(self, number: str, query: Any, body: Any) -> tuple[int, Any]:
        return 200, self.repo.comments.get(int(number), [])

    def _say(self, number: str, query: Any, body: Any) -> tuple[int, Any]:
        return 201, self.comment(int(number), body["body"], self.me)

    def _add_labels(self, number: str, query: Any, body: Any) -> tuple[int, Any]:
        row = self.repo.issues[int(number)]
        has = {label["name"] for label in row["labels"]}
        row["labels"] += [self.label(name) for name in body["labels"] if name not in has]
        return 200, row["labels"]

    def _take_label(self, number: str, name: str, query: Any, body: Any) -> tuple[int, Any]:
        row = self.repo.issues[int(number)]
        if name not in {label["name"] for label in row["labels"]}:
            return self._gone("Label does not exist")
        row["labels"] = [label for label in row["labels"] if label["name"] != name]
        return 200, row["labels"]

    def _pulls(self, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        rows = []
        for row in sorted(self.repo.pulls.values(), key=lambda one: -one["number"]):
            owner, _, branch = query.get("head", [""])[0].partition(":")
            if branch and (row["head"]["ref"] != branch or owner != self.repo.name.partition("/")[0]):
                continue
            simple = described.example("pull-request-simple-items")
            rows.append(simple | {key: row[key] for key in simple if key in row})
        return 200, rows

    def _one_pull(self, number: str, query: Any, body: Any) -> tuple[int, Any]:
        row = self.repo.pulls.get(int(number))
        return (200, row) if row is not None else self._gone()

    def _merge(self, number: str, query: Any, body: Any) -> tuple[int, Any]:
        row = self.repo.pulls[int(number)]
        if row["merged"] or row["state"] != "open" or row["mergeable"] is False:
            return self._gone("Pull Request is not mergeable", 405)
        if body.get("sha") != row["head"]["sha"]:
            return self._gone("Head branch was modified. Review and try the merge again.", 409)
        sha = f"{int(number) + 0xABC000:040x}"
        message = f"{body.get('commit_title', '')}\n\n{body.get('commit_message', '')}"
        self.merged(int(number), sha, message if body["merge_method"] != "rebase" else "rebased")
        return 200, {"sha": sha, "merged": True, "message": "Pull Request successfully merged"}

    def _commit(self, sha: str, query: Any, body: Any) -> tuple[int, Any]:
        if sha not in self.repo.messages:
            return self._gone()
        row = described.example("commit") | {"sha": sha, "files": []}
        row["commit"] = row["commit"] | {"message": self.repo.messages[sha]}
        return 200, row

    def _runs(self, sha: str, query: Any, body: Any) -> tuple[int, Any]:
        one = described.example("check-run-paginated")["check_runs"][0]
        rows = [one | {"status": status, "conclusion": how} for status, how in self.repo.checks.get(sha, [])]
        return 200, {"total_count": len(rows), "check_runs": rows}

    def _status(self, sha: str, query: Any, body: Any) -> tuple[int, Any]:
        row = described.example("combined-commit-status")
        one = row["statuses"][0]
        rows = [one | {"state": state} for state in self.repo.statuses.get(sha, [])]
        return 200, row | {"statuses": rows, "total_count": len(rows), "state": "pending", "sha": sha}

    def _refs(self, ref: str, query: Any, body: Any) -> tuple[int, Any]:
        one = described.example("git-ref-items")
        found = [name for name in self.repo.branches if f"heads/{name}".startswith(ref)]
        return 200, [one | {"ref": f"refs/heads/{name}", "object": one["object"] | {"sha": self.repo.branches[name]}}
                     for name in found]  # fmt: skip

    def _branch(self, name: str, query: Any, body: Any) -> tuple[int, Any]:
        if name in self.repo.renamed:
            url = f"{self.url}/repositories/{self.repo.id}/branches/{self.repo.renamed[name]}"
            return 301, {"message": "Moved Permanently", "url": url, "documentation_url": "https://docs.example"}
        if name not in self.repo.branches:
            return self._gone("Branch not found")
        row = described.example("branch-get")
        row["commit"] = row["commit"] | {"sha": self.repo.branches[name]}
        return 200, row | {"name": name}

    def _search(self, query: dict[str, list[str]]) -> tuple[int, Any]:
        whole = described.example("issue-search-result-item-paginated")
        one = whole["items"][0]
        for name in ("pull_request",):
            one.pop(name, None)
        rows = [one | {"number": number, "id": number} for number in (self.stale_search or self.repo.issues)]
        return 200, {"total_count": len(rows), "incomplete_results": False, "items": rows, "search_type": "lexical"}


class _Handler(BaseHTTPRequestHandler):
    """One request: judged, answered or failed, and the answer judged."""

    hub: PlayedGitHub
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, *_: Any) -> None:
        """Nobody listens."""

    def _serve(self) -> None:
        hub, parts = self.hub, urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        body = json.loads(raw) if raw else None
        with hub.lock:
            hub.seen.append((self.command, self.path))
            judged = parts.path.replace(f"/repositories/{hub.repo.id}", f"/repos/{hub.repo.name}")
            try:
                hub.wrong += described.judge_question(self.command, judged, parts.query, body)
            except AssertionError as why:
                hub.wrong.append(str(why))
            if self.headers.get("Authorization") != f"token {TOKEN}":
                hub.wrong.append("it is asked without the token")
            if TOKEN in self.path or TOKEN.encode() in raw:
                hub.wrong.append("the token stands where it does not belong")
            fault = hub.fault(self.command, parts.path, after=False)
            status, told = 0, None
            if fault is None:
                status, told = hub.answer(self.command, parts.path, parse_qs(parts.query), body)
                if self.command != "GET" and status < 300:
                    hub.effects.append((self.command, parts.path))
                fault = hub.fault(self.command, parts.path, after=True)
        if fault is not None:
            self._fail(fault)
            return
        if status < 300 or status >= 400:
            hub.wrong += described.judge_answer(self.command, judged, status, told)
        self._send(status, *self._paged(parts.path, parse_qs(parts.query), told))

    def _paged(self, path: str, query: dict[str, list[str]], told: Any) -> tuple[Any, dict[str, str]]:
        """One page of a list, and where the next one is, as GitHub says it."""
        if "per_page" not in query:
            return told, {}
        size = min(int(query["per_page"][0]), self.hub.page)
        page = int(query.get("page", ["1"])[0])
        name = next(
            (one for one in ("check_runs", "statuses", "items") if isinstance(told, dict) and one in told), None
        )
        rows = told[name] if name is not None else told
        if not isinstance(rows, list):
            return told, {}
        shown = rows[(page - 1) * size : page * size]
        more: dict[str, str] = {}
        if page * size < len(rows):
            pairs = {key: values[0] for key, values in query.items()} | {"page": str(page + 1)}
            text = "&".join(f"{key}={value}" for key, value in pairs.items())
            more["Link"] = f'<{self.hub.url}{path}?{text}>; rel="next", <{self.hub.url}{path}?page=9>; rel="last"'
        return (told | {name: shown} if name is not None else shown), more

    def _fail(self, fault: Fault) -> None:
        match fault.kind:
            case "silence":
                self.hub.quiet.wait(5)
                self.close_connection = True
            case "broken":
                self.close_connection = True
            case "garbled":
                self._raw(200, b"{", {})
            case "limited":
                reset = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4102444800"}
                self._send(403, {"message": "API rate limit exceeded"}, reset)
            case "secondary":
                told = {"message": "You have exceeded a secondary rate limit. Please wait."}
                self._send(403, told, {"Retry-After": "7"})
            case "said":
                self._send(403, {"message": "You have exceeded a secondary rate limit. Please wait."}, {})
            case status:
                self._send(int(status), {"message": "Server Error"}, {})

    def _send(self, status: int, told: Any, more: dict[str, str]) -> None:
        if status == 301:
            more = more | {"Location": told["url"]}
        self._raw(status, json.dumps(told).encode(), more)

    def _raw(self, status: int, raw: bytes, more: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json", "Content-Length": str(len(raw))} | more).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)
        self.wfile.flush()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - names of the standard library
