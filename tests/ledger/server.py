"""A private PostgreSQL server for the suite, where its programs are installed; started once, gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

_NAMES = count(1)


def programs() -> Path | None:
    """The directory of the newest server's programs, None where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else None


class Server:
    """A running server; every call of `database` makes an empty database of its own."""

    def __init__(self, port: int, control: Callable[..., None]) -> None:
        self.port = self._port = port
        self._control = control

    def restart(self, how: str = "fast") -> None:
        """Stop it (`immediate`: as if it had crashed) and start it again."""
        self._control("-m", how, "restart")

    def stop(self, how: str = "fast") -> None:
        """Stop it until `start`."""
        self._control("-m", how, "stop")

    def start(self) -> None:
        """Start it again."""
        self._control("start")

    def url(self, name: str) -> str:
        return f"postgresql://app@127.0.0.1:{self._port}/{name}"

    def database(self) -> str:
        import psycopg

        name = f"registry{next(_NAMES)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)


@contextmanager
def server(*, durable: bool = False) -> Iterator[Server]:
    """Start a server; unless `durable` it forgets, for tests that do not kill it. As root, it runs as postgres."""
    where = programs()
    if where is None:
        raise RuntimeError("PostgreSQL is not installed")
    directory = Path(tempfile.mkdtemp(prefix="tenuto-pg-"))
    directory.chmod(0o755)
    become: list[str] = []
    if os.geteuid() == 0:
        shutil.chown(directory, "postgres")
        become = ["runuser", "-u", "postgres", "--"]
    port = _free_port()
    quick = "" if durable else "-c fsync=off -c synchronous_commit=off -c full_page_writes=off"
    options = f"-c listen_addresses=127.0.0.1 -p {port} -k {directory} {quick}"
    data = str(directory / "data")

    def run(*arguments: str) -> None:
        subprocess.run([*become, *arguments], check=True, capture_output=True, timeout=60, cwd=directory)

    try:
        run(
            str(where / "initdb"), "-D", data, "-U", "app", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"
        )

        def control(*how: str) -> None:
            run(str(where / "pg_ctl"), "-D", data, "-w", "-l", str(directory / "log"), "-o", options, *how)

        control("start")
        try:
            yield Server(port, control)
        finally:
            control("-m", "immediate", "stop")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
