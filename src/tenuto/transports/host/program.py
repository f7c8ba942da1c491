"""Starting the program of a turn: its own session, its own directory, exactly the environment it was given.

Starting either succeeds, and then the program runs, or fails by name before anything of it ran. The prompt
lies whole in a file without a name, so nobody has to keep feeding it. Standard library only.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, NoReturn

PIPE_BYTES: Final = 1 << 20
PASSING: Final = (errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE)
"""The machine's shortage of the moment: nothing a person has to mend."""


class NotStartedError(Exception):
    """The program did not start and nothing of it ran; `mendable` when what is named has to be put right."""

    def __init__(self, reason: str, *, mendable: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.mendable = mendable


class Program(NamedTuple):
    """A running program: its leader, the moment that started (None where the platform does not tell), its output."""

    pid: int
    started: int | None
    out: int
    err: int


def nameless(folder: str, text: str) -> int:
    """A descriptor to read `text` from, whole, in a file that never had its content under a name."""
    made = f"{folder}/.{os.urandom(8).hex()}.prompt"
    writing = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        reading = os.open(made, os.O_RDONLY | os.O_CLOEXEC)
        os.unlink(made)  # noqa: PTH108 - pathlib would cost the host a third of its start
        view = memoryview(text.encode("utf-8", "replace"))
        while view:
            view = view[os.write(writing, view) :]
    finally:
        os.close(writing)
    return reading


def start(argv: Sequence[str], cwd: str, env: Mapping[str, str], stdin: int) -> Program:
    """Start a program; returns when exec has succeeded, raises NotStartedError when it has not."""
    try:
        out, out_end = _pipe()
        err, err_end = _pipe()
        trouble, trouble_end = os.pipe()
        pid = os.fork()
    except OSError as error:
        raise _not_started("fork", error.errno or 0, argv[0], cwd) from None
    if pid == 0:
        _become(argv, cwd, env, (stdin, out_end, err_end), trouble_end)
    for descriptor in (out_end, err_end, trouble_end):
        os.close(descriptor)
    told = _read_all(trouble)
    if told:
        os.waitpid(pid, 0)
        os.close(out)
        os.close(err)
        stage, _, number = told.decode("ascii").partition(" ")
        raise _not_started(stage, int(number), argv[0], cwd)
    return Program(pid, started(pid), out, err)


def close_all(keep: Sequence[int]) -> None:
    """Close every descriptor but the standard three and those in `keep`."""
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - pathlib would cost the host a third of its start
        if (number := int(name)) > 2 and number not in keep:
            try:
                os.close(number)
            except OSError:  # the one that the listing itself had open
                pass


def started(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None where there is no such table or process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as table:  # noqa: PTH123 - pathlib would cost the host a third of its start
            line = table.read(4096)
    except OSError:
        return None
    return int(line[line.rindex(b")") + 2 :].split()[19])


def _become(
    argv: Sequence[str], cwd: str, env: Mapping[str, str], standard: tuple[int, int, int], trouble: int
) -> NoReturn:
    stage = "session"
    try:
        os.setsid()
        stage = "cwd"
        os.chdir(cwd)
        stage = "exec"
        for number, descriptor in enumerate(standard):
            os.dup2(descriptor, number)
        close_all((trouble,))
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvpe(argv[0], list(argv), dict(env))
    except OSError as error:
        os.write(trouble, f"{stage} {error.errno or 0}".encode("ascii"))
    except BaseException:  # noqa: BLE001 - this is a copy of the host: whatever happens, it must not go on as one
        os.write(trouble, f"{stage} {errno.EINVAL}".encode("ascii"))
    os._exit(127)


def _not_started(stage: str, number: int, program: str, cwd: str) -> NotStartedError:
    if number in PASSING:
        return NotStartedError(f"the machine could not start another process ({os.strerror(number)})", mendable=False)
    if stage == "cwd":
        match number:
            case errno.ENOENT:
                said = f"the working directory {cwd} does not exist"
            case errno.ENOTDIR:
                said = f"{cwd} is not a directory"
            case errno.EACCES:
                said = f"the working directory {cwd} may not be entered"
            case _:
                said = f"the working directory {cwd} cannot be used ({os.strerror(number)})"
        return NotStartedError(said, mendable=True)
    match number:
        case errno.ENOENT | errno.ENOTDIR:
            said = f"the program {program}, or the interpreter it names, was not found"
        case errno.EACCES:
            said = f"the program {program} may not be run: it is not executable"
        case errno.ENOEXEC:
            said = f"{program} is not a program this system can run"
        case errno.E2BIG:
            said = f"the arguments and environment of {program} are too long"
        case _:
            said = f"the program {program} could not be started ({os.strerror(number)})"
    return NotStartedError(said, mendable=True)


def _pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        try:
            fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:  # this user's pipes are full: a small one does, slower
            pass
    return reading, writing


def _read_all(descriptor: int) -> bytes:
    held = b""
    while more := os.read(descriptor, 256):
        held += more
    os.close(descriptor)
    return held
