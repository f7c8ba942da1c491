"""The one way from a command to a verb: over the supervisor's socket, or for reading without one, in this process.

A verb that changes something needs the supervisor; what an agent says at the end of its turn may be left in the spool
instead. Inside a turn only the agent's own token is shown, never the operator's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from tenuto.model.faults import Corrupt, OutOfReach, UnsupportedVersion
from tenuto.surfaces.cli.client import Client, Unreachable
from tenuto.surfaces.cli.entrances import Entrances
from tenuto.surfaces.cli.exits import Failure, no_supervisor
from tenuto.surfaces.routes import PREFIX, ROUTES, address

Answer = Mapping[str, object]

SPOOLED = frozenset({"task.complete", "task.fail", "task.wait", "task.report", "task.ready"})
"""What an agent may leave behind while nobody listens; a test compares it with the table of verbs."""
TOKEN_BYTES = 4096
QUIET = 45.0
"""How many seconds a feed may be silent, its keep-alives included, before it counts as ended."""


class Door:
    """The verbs of one registry for one caller. `note` takes a line for the person, said beside the answer."""

    def __init__(self, entrances: Entrances, note: Callable[[str], None]) -> None:
        self._entrances = entrances
        self._note = note
        self._noted = False
        #: Who leads on another machine, in a sentence, once that is known.
        self._far = ""

    @cached_property
    def _agent(self) -> str:
        return self._entrances.environment.get("TENUTO_TOKEN", "")

    @cached_property
    def _client(self) -> Client:
        told = self._entrances.environment.get("TENUTO_API", "") if self._agent else ""
        path = Path(told.removeprefix("unix:")) if told else self._entrances.places.socket
        return Client(path, self._agent or self.operator_token())

    def operator_token(self) -> str:
        """The operator's token, "" when there is none yet. Raises Failure when it is not this user's to read."""
        return _token_in(self._entrances.places.operator_token)

    @cached_property
    def _leader(self) -> Client | None:
        """Whoever leads this registry from another home on this machine; None when nobody does, as far as is known."""
        try:
            glance, places = self._entrances.glance(), self._entrances.places
        except (OutOfReach, Corrupt, UnsupportedVersion):
            return None
        if glance.standing not in ("live", "stop-fenced") or glance.address in (None, str(places.socket)):
            return None
        if not glance.near:
            self._far = f"pid {glance.pid} leads, on {glance.host}: ask there"
            return None
        address = Path(str(glance.address))
        token = self._agent or _token_in(address.with_name(places.operator_token.name))
        self._note(f"pid {glance.pid} leads, of another home: {address.parent}")
        return Client(address, token)

    def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        key: str | None = None,
    ) -> object:
        """What the supervisor of this home answers, or whoever leads its registry from another one."""
        try:
            return self._client.ask(method, path, query=query, body=body, key=key).value
        except Unreachable:
            leader = self._leader
            if leader is None:
                raise
            return leader.ask(method, path, query=query, body=body, key=key).value

    def read(self, verb: str, params: Mapping[str, object], *, quiet: bool = False) -> Answer:
        """What a reading verb answers, from the supervisor or, without one, from the registry itself.

        `quiet` leaves out the line that says which it was. Raises Failure.
        """
        method, path, query = address(verb, given(params))
        try:
            return answered(self._ask(method, path, query=_query(query)))
        except Unreachable as why:
            if not self._noted and not quiet:
                self._noted = True
                self._note(f"no supervisor is running ({self._far or why}): this is what the registry says")
            return self._alone(verb, given(params))

    def live(self, verb: str, params: Mapping[str, object]) -> Answer:
        """As `read`, but from the supervisor alone; raises Unreachable without one."""
        method, path, query = address(verb, given(params))
        return answered(self._ask(method, path, query=_query(query)))

    def change(self, verb: str, params: Mapping[str, object], key: str | None = None) -> Answer:
        """What a changing verb answers. Raises Failure: exit 3 without a supervisor, 6 when its answer was lost."""
        key = key or self._entrances.fresh_key()
        method, path, body = address(verb, given(params))
        try:
            return answered(self._ask(method, path, body=body, key=key))
        except Unreachable as why:
            if self._agent and verb in SPOOLED:
                return self._spooled(verb, given(params), key)
            if ROUTES[verb].path == "/stop":
                raise
            raise no_supervisor(self._far or str(why)) from None

    def login(self) -> Answer:
        """A link that logs a browser in. Raises Failure without a supervisor."""
        try:
            return answered(self._client.ask("POST", "/login/link", key=self._entrances.fresh_key()).value)
        except Unreachable as why:
            raise no_supervisor(str(why)) from None

    def pairing(self, name: str) -> Answer:
        """A code that pairs a browser's extension under this name. Raises Failure without a supervisor."""
        try:
            body = {"name": name}
            key = self._entrances.fresh_key()
            return answered(self._client.ask("POST", "/extension/code", body=body, key=key).value)
        except Unreachable as why:
            raise no_supervisor(str(why)) from None

    @contextmanager
    def feed(self, params: Mapping[str, object]) -> Iterator[Iterator[Answer]]:
        """What happens, as it happens, for as long as the supervisor is there. Raises Unreachable without one."""
        with self._client.feed(f"{PREFIX}{ROUTES['events'].path}", given(params), quiet=QUIET) as events:
            yield events

    def _spooled(self, verb: str, params: Mapping[str, object], key: str) -> Answer:
        path = self._entrances.spool(verb, params, key)
        return {
            "result": {"task": params.get("task"), "spooled": str(path)},
            "replayed": False,
            "effects": [],
            "text": "no supervisor is running: it is written down and will be read when one is",
        }

    def _alone(self, verb: str, params: Mapping[str, object]) -> Answer:
        import asyncio

        from tenuto.engine.desk import Caller
        from tenuto.model.ids import TaskId
        from tenuto.model.snapshot import Role
        from tenuto.surfaces import verbs

        task = self._entrances.environment.get("TENUTO_TASK")
        agent = Caller(Role.AGENT, "agent", TaskId(task) if task else None)
        caller = agent if self._agent else Caller(Role.OPERATOR, "operator")
        desk, close = self._entrances.open_desk_readonly()
        try:
            return asyncio.run(verbs.call(desk, caller, verb, params))
        finally:
            close()


def _token_in(path: Path) -> str:
    """An operator's token from its file, "" when there is none. Raises Failure when it is not this user's to read."""
    try:
        with path.open("rb") as file:
            return file.read(TOKEN_BYTES).decode("ascii").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError):
        raise Failure("not_allowed", f"the operator's token cannot be read: {path}", mend="tenuto doctor") from None


def given(params: Mapping[str, object]) -> dict[str, object]:
    """The parameters that were given at all."""
    return {name: value for name, value in params.items() if value is not None}


def answered(value: object) -> Answer:
    """An answer's body. Raises Failure when it is not what a supervisor says."""
    if not isinstance(value, Mapping):
        raise Failure("http", "what answers at the socket is no supervisor of this version", mend="tenuto doctor")
    return value


def _query(params: Mapping[str, object]) -> dict[str, object]:
    return {name: str(value).lower() if isinstance(value, bool) else value for name, value in params.items()}
