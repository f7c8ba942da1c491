"""Requests to GitHub, and what their failures mean.

The question is always the same: is it certain that nothing was written? A refusal, a limit and a connection that never
stood are certain; a time-out, a broken connection and an error of the server are not. The token comes from the
environment or from a file that only its owner reads, and is sent to no other place than the one that is configured.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tenuto.model.faults import Mistake

VERSION = {"X-GitHub-Api-Version": "2022-11-28"}
PER_PAGE = 100
#: Seconds until an answer is not waited for any longer; GitHub itself gives a request up after ten.
PATIENCE = 20.0
#: Seconds between two tries of a question, and how often one is asked.
BREATH, TRIES = 0.3, 3
#: Seconds to wait where a limit does not say for how long.
LIMITED = 60.0
ANSWER_BYTES = 32 * 1024 * 1024
TOKEN_BYTES = 4096


@dataclass(frozen=True)
class Account:
    """Where GitHub is and who asks. `api` None: the public one. `token` outranks the file; both None: nobody."""

    host: str = "github.com"
    api: str | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None

    def secret(self) -> str | None:
        """The token; Mistake for a file that others can read, OSError for one that cannot be read."""
        if self.token is not None or self.token_file is None:
            return self.token
        with self.token_file.open("rb") as file:
            import os

            seen = os.fstat(file.fileno())
            if not stat.S_ISREG(seen.st_mode) or seen.st_mode & 0o077:
                raise Mistake(f"{self.token_file} is to be a file with mode 0600", field="github.token_file")
            raw = file.read(TOKEN_BYTES + 1)
        told = raw.decode("utf-8", "replace").strip()
        if not told or len(raw) > TOKEN_BYTES or not told.isascii() or any(letter.isspace() for letter in told):
            raise Mistake(f"{self.token_file} holds no token", field="github.token_file")
        return told


class Later(Exception):
    """Nothing was answered, and nothing was written; `after` seconds from now it may be asked again."""

    def __init__(self, why: str, after: float = 0.0) -> None:
        super().__init__(why)
        self.after = after


class Doubt(Exception):
    """Something was sent, and it cannot be told what came of it."""


class Said(Exception):
    """GitHub refused, with this status; nothing was written."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"GitHub says {status}: {message}")
        self.status = status
        self.message = message


class Api:
    """One repository on GitHub, through the client library. Not to be used by two threads at once."""

    def __init__(self, account: Account, repo: str, pause: Callable[[float], None] = time.sleep) -> None:
        self.repo = repo
        self._account = account
        self._pause = pause
        self._client: Any = None
        self._root: Mapping[str, Any] | None = None
        self._who: str | None = None
        self._asked_who = False

    @property
    def place(self) -> str:
        """The path of the repository in the API."""
        return f"/repos/{self.repo}"

    def about(self) -> Mapping[str, Any]:
        """What GitHub says of the repository itself, asked once; a renamed one answers under its new name."""
        if self._root is None:
            told = self.get(self.place)
            if not isinstance(told, Mapping) or not isinstance(told.get("full_name"), str):
                raise Later("GitHub's answer about the repository cannot be read")
            self._root = told
            self.repo = told["full_name"]
        return self._root

    def whoami(self) -> str | None:
        """The login that the token stands for; None where it stands for nobody, as an installation's does."""
        if not self._asked_who:
            try:
                told = self.get("/user")
                self._who = told.get("login") if isinstance(told, Mapping) else None
            except Said:
                self._who = None
            self._asked_who = True
        return self._who

    def get(self, path: str, params: Mapping[str, str | int] | None = None) -> Any:
        """The answer to a question, asked again a few times where the server fails. Raises Said or Later."""
        return self._get(path, params)[0]

    def pages(
        self, path: str, params: Mapping[str, str | int], most: int, within: str | None = None, *, whole: bool = True
    ) -> Iterator[Any]:
        """The entries of every page, at most `most` pages; Later when there are more and they are all needed.

        `within` is the list's name in an answer that is no list itself.
        """
        asked: Mapping[str, str | int] | None = {**params, "per_page": PER_PAGE}
        for _ in range(most):
            told, following = self._get(path, asked)
            entries = told.get(within) if within is not None and isinstance(told, Mapping) else told
            if not isinstance(entries, list):
                raise Later("GitHub's answer is no list")
            yield from entries
            if following is None:
                return
            path, asked = following, None
        if whole:
            raise Later(f"GitHub has more than {most * PER_PAGE} entries; ask for fewer by a label or a list")

    def write(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send one write, once. Raises Said or Later when nothing was written, Doubt when that cannot be told."""
        return self._ask(method, path, None, body)[0]

    def close(self) -> None:
        """Let go of the connection."""
        if self._client is not None:
            self._client.__exit__(None, None, None)
            self._client = None

    # -- within

    def _get(self, path: str, params: Mapping[str, str | int] | None) -> tuple[Any, str | None]:
        for attempt in range(TRIES):
            try:
                return self._ask("GET", path, params, None)
            except Doubt as why:
                if attempt + 1 == TRIES:
                    raise Later(str(why)) from None
                self._pause(BREATH * 2**attempt)
        raise AssertionError("unreachable")

    def _ask(
        self, method: str, path: str, params: Mapping[str, str | int] | None, body: Mapping[str, Any] | None
    ) -> tuple[Any, str | None]:
        """The answer as JSON, and where its next page is."""
        from githubkit.exception import GitHubException, RateLimitExceeded, RequestError, RequestFailed
        from httpx import ConnectError, ConnectTimeout, PoolTimeout, UnsupportedProtocol

        try:
            told = self._opened().request(method, path, params=params, json=body, headers=VERSION)
            if len(told.content) > ANSWER_BYTES:
                raise Later(f"GitHub's answer is larger than {ANSWER_BYTES} bytes")
            return (told.json() if told.content else None), self._following(told.raw_response.links)
        except RateLimitExceeded as why:
            after = max(why.retry_after.total_seconds(), 1.0)
            raise Later("GitHub limits how often it may be asked", after) from None
        except RequestFailed as why:
            raise self._failed(why.response.status_code, why.response.text) from None
        except RequestError as why:
            unsent = isinstance(why.exc, ConnectError | ConnectTimeout | PoolTimeout | UnsupportedProtocol)
            kind = type(why.exc).__name__
            raise (Later if unsent else Doubt)(f"GitHub did not answer ({kind})") from None
        except (GitHubException, ValueError) as why:
            raise Doubt(f"GitHub's answer cannot be read ({type(why).__name__})") from None

    @staticmethod
    def _failed(status: int, text: str) -> Exception:
        message = _message(text)
        if status >= 500:
            return Doubt(f"GitHub says {status}")
        if status in (403, 429) and ("secondary rate" in message.lower() or status == 429):
            return Later("GitHub limits how often it may be asked", LIMITED)
        return Said(status, message)

    def _following(self, links: Mapping[str, Mapping[str, str]]) -> str | None:
        """The next page, on the very server that was asked; Later for any other."""
        url = links.get("next", {}).get("url")
        if url is None:
            return None
        base = urlsplit(str(self._opened().config.base_url))
        there = urlsplit(url)
        if (there.scheme, there.netloc) != (base.scheme, base.netloc):
            raise Later("GitHub's next page is on another server; it was not asked")
        return url

    def _opened(self) -> Any:
        if self._client is None:
            try:
                from githubkit import GitHub, TokenAuthStrategy
            except ImportError:
                raise Mistake("GitHub needs more parts: install tenuto[github]", field="source") from None
            try:
                secret = self._account.secret()
            except OSError as why:
                raise Later(f"the token of GitHub cannot be read: {why.strerror}") from None
            options: dict[str, Any] = {
                "timeout": PATIENCE,
                "auto_retry": False,
                "http_cache": False,
                "user_agent": "tenuto",
                "trust_env": not (near := _loopback(self._account.api)),
            }
            if near:  # without TLS; reading every root certificate for it takes longer than the answer
                options["ssl_verify"] = False
            if (api := self._api()) is not None:
                options["base_url"] = api
            made: Any = GitHub(TokenAuthStrategy(secret), **options) if secret is not None else GitHub(**options)
            made.__enter__()
            self._client = made
        return self._client

    def _api(self) -> str | None:
        if self._account.api is not None or self._account.host == Account.host:
            return self._account.api
        return f"https://{self._account.host}/api/v3"


def _loopback(api: str | None) -> bool:
    """Whether it is asked on this machine, without TLS."""
    return api is not None and api.startswith("http://") and urlsplit(api).hostname in ("127.0.0.1", "::1", "localhost")


def _message(text: str) -> str:
    """What GitHub says of a refusal, in one printable line."""
    import json

    try:
        told = json.loads(text[:65536])
    except ValueError:
        told = None
    message = told.get("message") if isinstance(told, dict) else None
    line = message if isinstance(message, str) else "no reason"
    return "".join(letter for letter in line if letter.isprintable())[:300]
