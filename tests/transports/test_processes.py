"""Processes are known by more than their pid, found by what they carry, and ended only when verified."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from tenuto.transports import processes
from tenuto.transports.processes import Ending, Identity, Presence, linux, portable

pytestmark = pytest.mark.only_on("linux", "darwin")  # process groups and sessions are POSIX
only_linux = pytest.mark.only_on("linux")

NAME = "TENUTO_TEST_CARRIED"
REST = "import os, time; os.write(1, b'ready\\n'); time.sleep(60)"  # one write: two may share a pipe
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + REST
GRACE = timedelta(seconds=5)


class Nursery:
    """Starts programs that say when they are ready, and ends all of them, orphans included."""

    def __init__(self) -> None:
        self.value = uuid.uuid4().hex
        self.started: list[subprocess.Popen[str]] = []
        me = processes.identity_of(os.getpid())
        assert me is not None
        self.since = me.start

    def carriers(self) -> tuple[Identity, ...] | None:
        return processes.carriers(NAME, self.value, since=self.since)

    def start(self, program: str, *, carried: bool = True, setsid: bool = True) -> subprocess.Popen[str]:
        environment = dict(os.environ)
        if carried:
            environment[NAME] = self.value
        child = subprocess.Popen(
            [sys.executable, "-c", program],
            env=environment,
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=setsid,
        )
        self.started.append(child)
        return child

    def ready(self, program: str, *, carried: bool = True, setsid: bool = True) -> subprocess.Popen[str]:
        child = self.start(program, carried=carried, setsid=setsid)
        self.line(child)
        return child

    def line(self, child: subprocess.Popen[str]) -> str:
        assert child.stdout is not None
        line = child.stdout.readline().strip()
        assert line, "the program ended before it said anything"
        return line

    def close(self) -> None:
        for orphan in self.carriers() or ():
            processes.send(orphan, signal.SIGKILL)
        for child in self.started:
            if child.poll() is None:
                child.kill()
            child.wait(10)
            if child.stdout is not None:
                child.stdout.close()


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


def who(child: subprocess.Popen[str]) -> Identity:
    found = processes.identity_of(child.pid)
    assert found is not None
    return found


def until(holds: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for something only the process table shows."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError("it did not come about")
        time.sleep(0.005)


# --- identity and presence --------------------------------------------------


def test_a_running_process_is_alive_and_keeps_its_identity(nursery: Nursery) -> None:
    child = nursery.ready(REST)
    assert who(child) == who(child)
    assert processes.presence(who(child)) is Presence.ALIVE


def test_two_lives_of_one_pid_are_two_processes(nursery: Nursery) -> None:
    other = dataclasses.replace(who(nursery.ready(REST)), start=1)
    assert processes.presence(other) is Presence.GONE


def test_another_boot_means_gone(nursery: Nursery) -> None:
    here = who(nursery.ready(REST))
    assert here.boot == processes.boot_id()
    assert processes.presence(dataclasses.replace(here, boot="another")) is Presence.GONE


def test_an_identity_without_a_boot_is_not_called_alive(nursery: Nursery) -> None:
    assert processes.presence(dataclasses.replace(who(nursery.ready(REST)), boot="")) is Presence.UNKNOWN


def test_a_zombie_is_gone(nursery: Nursery) -> None:
    child = nursery.ready(REST)
    known = who(child)
    child.kill()
    until(lambda: processes.presence(known) is Presence.GONE)
    assert child.returncode is None, "nobody reaped it yet"
    assert processes.identity_of(child.pid) is None
    child.wait(10)
    assert processes.presence(known) is Presence.GONE


@only_linux
def test_a_leader_that_ended_before_its_threads_is_still_alive_and_still_carries(nursery: Nursery) -> None:
    program = (
        "import ctypes, os, threading, time\n"
        "def rest():\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
        "threading.Thread(target=rest).start()\n"
        "number = {'x86_64': 60, 'aarch64': 93}[os.uname().machine]\n"
        "ctypes.CDLL(None).syscall(number, 0)\n"  # ends this thread only
    )
    child = nursery.ready(program)
    known = who(child)
    until(lambda: b") Z " in linux._read(f"/proc/{child.pid}/stat", 4096))
    assert processes.presence(known) is Presence.ALIVE
    assert nursery.carriers() == (known,)


def test_nobody_has_an_impossible_pid() -> None:
    assert processes.identity_of(0) is None
    assert processes.identity_of(-1) is None
    assert processes.identity_of(2**22 + 1) is None


@only_linux
def test_a_program_name_cannot_forge_its_row() -> None:
    fields = b" ".join([b"S", b"1", b"42", b"43"] + [b"0"] * 13 + [b"1", b"0", b"777", b"0", b"0"])
    row = linux.parse_stat(b"7 (a) Z 9 9 (b) " + fields, 7, "boot")
    assert row.identity == Identity(7, 777, "boot")
    assert (row.group, row.session, row.finished) == (42, 43, False)


@only_linux
def test_a_process_that_may_not_be_seen_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    me = processes.identity_of(os.getpid())
    assert me is not None
    monkeypatch.setattr(linux, "PROC", "/nonexistent")
    assert processes.presence(me) is Presence.UNKNOWN
    assert processes.carriers(NAME, "x") is None
    assert processes.group_members(os.getpgrp()) is None
    assert processes.belongings(me, NAME, "x") is None


# --- finding ----------------------------------------------------------------

ORPHAN = (
    "import os, sys, time\n"
    "if os.fork():\n"
    "    os._exit(0)\n"
    "os.setsid()\n"
    "print(os.getpid(), flush=True)\n"
    "time.sleep(60)\n"
)


def test_an_orphan_that_left_group_and_session_is_found_by_what_it_carries(nursery: Nursery) -> None:
    child = nursery.start(ORPHAN)
    orphan = int(nursery.line(child))
    child.wait(10)
    assert [one.pid for one in nursery.carriers() or ()] == [orphan]
    assert processes.group_members(child.pid) == ()
    assert [one.pid for one in processes.session_members(orphan) or ()] == [orphan]


def test_a_value_is_matched_whole(nursery: Nursery) -> None:
    nursery.ready(REST)
    assert processes.carriers(NAME, nursery.value[:-1], since=nursery.since) == ()
    assert processes.carriers(NAME[1:], nursery.value, since=nursery.since) == ()
    assert processes.carriers(NAME, "", since=nursery.since) == ()


@only_linux
def test_older_processes_can_be_passed_over(nursery: Nursery, monkeypatch: pytest.MonkeyPatch) -> None:
    child = nursery.ready(REST)
    start = who(child).start
    readable = linux.carries
    monkeypatch.setattr(linux, "carries", lambda pid, needle: None if pid == child.pid else readable(pid, needle))
    assert processes.carriers(NAME, nursery.value) is None, "one of ours could not be read"
    assert processes.carriers(NAME, nursery.value, since=start) is None
    assert processes.carriers(NAME, nursery.value, since=start + 1) == ()


def test_a_group_lists_its_living_members(nursery: Nursery) -> None:
    program = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {REST!r}]); time.sleep(60)"
    child = nursery.ready(program)
    members = processes.group_members(child.pid)
    assert members is not None
    assert len(members) == 2
    assert who(child) in members
    assert processes.session_members(child.pid) == members


def test_survivors_of_a_dead_leader_that_carry_nothing_are_doubtful(nursery: Nursery) -> None:
    program = (
        "import os, time\n"
        "if os.fork():\n"
        "    time.sleep(60)\n"
        "os.environ.clear()\n"
        f"os.execv({sys.executable!r}, [{sys.executable!r}, '-c', {REST!r}])\n"
    )
    child = nursery.ready(program)
    leader = who(child)
    found = processes.belongings(leader, NAME, nursery.value)
    assert found is not None
    assert (len(found.certain), found.doubtful) == (2, ())
    (survivor,) = set(found.certain) - {leader}
    child.kill()
    child.wait(10)
    try:
        after = processes.belongings(leader, NAME, nursery.value)
        assert after == processes.Belongings((), (survivor,))
        ending = asyncio.run(processes.end_belongings(leader, NAME, nursery.value, grace=GRACE))
        assert ending is Ending.UNKNOWN
        assert processes.presence(survivor) is Presence.ALIVE
    finally:
        processes.send(survivor, signal.SIGKILL)


def test_a_reused_number_has_no_claim_on_the_new_group(nursery: Nursery) -> None:
    child = nursery.ready(REST, carried=False)
    former = dataclasses.replace(who(child), start=nursery.since)
    assert processes.belongings(former, NAME, nursery.value) == processes.Belongings(())
    assert asyncio.run(processes.end_belongings(former, NAME, nursery.value, grace=GRACE)) is Ending.ENDED
    assert child.poll() is None


# --- ending -----------------------------------------------------------------


def test_a_process_ends_when_asked(nursery: Nursery) -> None:
    child = nursery.ready(REST)
    assert asyncio.run(processes.end(who(child), grace=GRACE))
    assert child.wait(10) == -signal.SIGTERM


def test_one_that_ignores_the_request_is_killed_after_its_grace(nursery: Nursery) -> None:
    child = nursery.ready(DEAF)
    assert asyncio.run(processes.end(who(child), grace=timedelta(milliseconds=100))) is Ending.ENDED
    assert child.wait(10) == -signal.SIGKILL


def test_a_stopped_process_hears_the_request(nursery: Nursery) -> None:
    child = nursery.ready(REST)
    child.send_signal(signal.SIGSTOP)
    assert asyncio.run(processes.end(who(child), grace=GRACE))
    assert child.wait(10) == -signal.SIGTERM


def test_a_successor_of_the_pid_is_never_signalled(nursery: Nursery) -> None:
    child = nursery.ready(REST)
    former = dataclasses.replace(who(child), start=1)
    assert not processes.send(former, signal.SIGKILL)
    assert asyncio.run(processes.end(former, grace=GRACE)) is Ending.ENDED, "the one that was meant is gone"
    assert child.poll() is None


def test_without_pidfd_identity_is_still_compared_first(nursery: Nursery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    child = nursery.ready(DEAF)
    assert not processes.send(dataclasses.replace(who(child), start=1), signal.SIGKILL)
    assert asyncio.run(processes.end(who(child), grace=timedelta(milliseconds=50))) is Ending.ENDED
    assert child.wait(10) == -signal.SIGKILL


def test_everything_that_belongs_to_a_leader_ends_with_it(nursery: Nursery) -> None:
    escape = "import os; os.setsid(); " + DEAF
    program = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {escape!r}])\n"  # leaves the group, ignores requests
        f"subprocess.Popen([sys.executable, '-c', {REST!r}])\n"  # stays in the group
        "time.sleep(60)\n"
    )
    child = nursery.ready(program)
    nursery.line(child)
    bystander = nursery.ready(REST, carried=False)
    leader = who(child)
    found = processes.belongings(leader, NAME, nursery.value)
    assert found is not None
    assert len(found.certain) == 3
    ending = asyncio.run(processes.end_belongings(leader, NAME, nursery.value, grace=timedelta(milliseconds=200)))
    assert ending is Ending.ENDED
    assert {processes.presence(one) for one in found.certain} == {Presence.GONE}
    assert bystander.poll() is None


def test_a_member_of_a_living_leaders_group_ends_even_if_it_carries_nothing(nursery: Nursery) -> None:
    bare = f"import os; os.execve({sys.executable!r}, [{sys.executable!r}, '-c', {REST!r}], {{}})"
    program = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {bare!r}]); time.sleep(60)"
    child = nursery.ready(program)
    leader = who(child)
    members = processes.group_members(child.pid)
    assert members is not None
    assert len(members) == 2
    # Nobody reaps the leader here; as a zombie it still pins its number, so the group stays provably its own.
    assert asyncio.run(processes.end_belongings(leader, NAME, nursery.value, grace=GRACE)) is Ending.ENDED
    assert {processes.presence(one) for one in members} == {Presence.GONE}


def test_what_keeps_coming_back_is_ended_until_nobody_is_left(nursery: Nursery) -> None:
    hop = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: os.fork() and os._exit(0))\n"  # each request makes a successor
        "print('ready', flush=True)\n"
        "while True: time.sleep(60)\n"
    )
    child = nursery.ready(hop)
    ending = asyncio.run(processes.end_all(nursery.carriers, grace=timedelta(milliseconds=300)))
    assert ending is Ending.ENDED
    assert child.wait(10) == 0
    assert nursery.carriers() == ()


def test_who_cannot_be_told_is_not_called_ended() -> None:
    assert asyncio.run(processes.end_all(lambda: None, grace=GRACE)) is Ending.UNKNOWN
    assert not Ending.UNKNOWN
    assert not Ending.LEFT


def test_the_calling_process_is_never_a_target() -> None:
    me = processes.identity_of(os.getpid())
    assert me is not None
    assert asyncio.run(processes.end(me, grace=timedelta(0))) is Ending.ENDED


def test_what_will_not_end_is_said_to_be_left(monkeypatch: pytest.MonkeyPatch, nursery: Nursery) -> None:
    from tenuto.transports.processes import ending

    child = nursery.ready(REST)
    monkeypatch.setattr(ending, "KILL_WAIT", timedelta(milliseconds=50))
    monkeypatch.setattr(ending, "send", lambda *_: False)
    assert asyncio.run(ending.end(who(child), grace=timedelta(0))) is Ending.LEFT


# --- the other platforms' table, and the price ------------------------------


def test_the_portable_table_agrees_about_a_running_and_a_finished_process(nursery: Nursery) -> None:
    child = nursery.ready(REST)
    row = portable.seen(child.pid)
    assert row is not None
    assert (row.identity.pid, row.group, row.session, row.finished) == (child.pid, child.pid, child.pid, False)
    assert portable.carries(child.pid, f"{NAME}={nursery.value}".encode()) is True
    assert portable.carries(child.pid, f"{NAME}=other".encode()) is False
    assert portable.owner(child.pid) == os.getuid()
    assert child.pid in portable.pids()
    child.kill()
    until(lambda: (found := portable.seen(child.pid)) is None or found.finished)
    child.wait(10)
    assert portable.seen(child.pid) is None
    assert portable.carries(child.pid, b"A=B") is False


@only_linux
def test_asking_on_linux_imports_nothing_outside_the_standard_library() -> None:
    program = (
        "import sys; from tenuto.transports import processes; import os; processes.identity_of(os.getpid());"
        "print('psutil' in sys.modules, 'asyncio' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.split() == ["False", "False"]


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root may read every memory; be somebody else for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@only_linux
def test_a_program_that_guards_its_memory_makes_the_question_unanswerable(nursery: Nursery) -> None:
    guard = (
        "import ctypes, os, threading, time; os.geteuid() or os.setuid(65534); ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); "
    )
    threaded = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); "
    for program in (guard + REST, guard + threaded + REST):
        child = nursery.ready(program)
        since = who(child).start
        with unprivileged():
            assert processes.carriers(NAME, nursery.value, since=since) is None
            assert processes.carriers(NAME, nursery.value, since=since + 1) == ()
        child.kill()
        child.wait(10)
