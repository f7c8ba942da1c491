"""How long an agent with a session stands still between two turns, and what the hosts of agents take in memory.

A supervisor process serves tasks of a small agent of the Agent Client Protocol that stamps the time: when it began,
when its session was open, when it got its words, when it had answered. The program is started anew for each turn, so
its own start is told apart from the gap: what is left is ours. Then twenty such agents are in the middle of a turn at
once, each under a host of its own, and the proportional set size of the hosts is read.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench.detached import Detached, supervisor_of
from bench.world import OPERATOR, UNSTALLED, centile, filling, home, median, stamps, times
from tenuto.config import Settings
from tenuto.engine import desk
from tenuto.model.work import Agent
from tenuto.proof.bench import Row
from tenuto.wiring.daemon import Supervisor

TURNS = 40
LEFT_OUT = 2
HOSTS = 20
MB = 1_000_000
PATIENCE = 180.0

AGENT = """\
import json, os, sys, time

def stamp(word):
    with open(sys.argv[1], "a") as file:
        file.write(f"{word} {time.time():.6f} {os.environ.get('TENUTO_ATTEMPT', '-')}\\n")

def say(told):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **told}) + "\\n")
    sys.stdout.flush()

stamp("start")
for line in sys.stdin:
    told = json.loads(line)
    name, number = told.get("method"), told.get("id")
    if name == "initialize":
        say({"id": number, "result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}})
    elif name in ("session/new", "session/load"):
        stamp("open")
        say({"id": number, "result": {"sessionId": "bench"}})
    elif name == "session/prompt":
        stamp("begin")
        if len(sys.argv) > 2:
            time.sleep(float(sys.argv[2]))
        text = "```tenuto\\nstatus: working\\n```"
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        say({"method": "session/update", "params": {"sessionId": "bench", "update": update}})
        stamp("end")
        say({"id": number, "result": {"stopReason": "end_turn"}})
"""


def measure(place: Path, effort: float) -> Iterator[Row]:
    """Rows for the gap between two turns in one session, and for the memory of hosts."""
    (place / "agent.py").write_text(AGENT, "utf-8")
    turns = times(effort, TURNS, 10)
    gaps, own = between(place, turns)
    ours = [gap - start for gap, start in zip(gaps, own, strict=True)]
    yield Row(
        "an agent's turn ends -> it has its next words",
        f"{median(ours):.0f} ms + the program's own start ({median(own):.0f} ms), median of {len(ours)};"
        f" p99 {centile(ours, 0.99):.0f} ms",
        "",
        None,
        {"agent_gap_over_start_ms": median(ours), "agent_gap_ms": median(gaps), "agent_start_ms": median(own)},
    )
    each, whole, agents, came = crowd(place)
    yield Row(
        f"{HOSTS} agents in a turn at once",
        f"{median(each):.1f} MB of PSS a host, {whole:.0f} MB all of them (their programs {agents:.0f} MB);"
        f" all at work after {came:.1f} s",
        "",
        None,
        {"host_pss_mb": median(each), "hosts_pss_mb": whole, "hosts": float(len(each)), "hosts_at_work_s": came},
    )


def between(place: Path, turns: int) -> tuple[list[float], list[float]]:
    """Milliseconds from one turn's end to the next one's words, and of the program's own start in them."""
    file, folder = place / "gaps", place / "gap-home"
    settings = home(folder)
    asyncio.run(filled(settings, place, [(str(file),)], turns))
    with supervisor_of(folder, place.parent / "bytecode") as supervisor:
        supervisor.start()
        supervisor.until("the turns", lambda: ended(file) >= turns, PATIENCE)
        leave(supervisor, folder)
    words = ("end", "start", "open", "begin")
    at: dict[str, list[float]] = {word: [one.at for one in stamps(file) if one.word == word] for word in words}
    pairs = list(zip(at["end"], at["start"][1:], at["open"][1:], at["begin"][1:], strict=False))[LEFT_OUT:]
    return [1000 * (begin - end) for end, _, _, begin in pairs], [
        1000 * (open_ - start) for _, start, open_, _ in pairs
    ]


def crowd(place: Path) -> tuple[list[float], float, float, float]:
    """PSS of each host in MB, of all hosts, of their programs, and seconds until all of them were at work."""
    folder = place / "crowd-home"
    settings = home(folder)
    files = [place / f"crowd{n}" for n in range(HOSTS)]
    asyncio.run(filled(settings, place, [(str(file), "120") for file in files], 1))
    with supervisor_of(folder, place.parent / "bytecode") as supervisor:
        pid = supervisor.start()
        supervisor.until("all at work", lambda: all(begun(file) for file in files), PATIENCE)
        came = max(one.at for file in files for one in stamps(file)) - psutil.Process(pid).create_time()
        hosts = hosts_of(folder)
        each = [one.memory_full_info().pss / MB for one in hosts]
        programs = [child for host in hosts for child in host.children(recursive=True)]
        agents = sum(one.memory_full_info().pss for one in programs) / MB
        leave(supervisor, folder)
        for one in [*programs, *hosts]:
            end(one)
    return each, sum(each), agents, came


def ended(file: Path) -> int:
    return sum(one.word == "end" for one in stamps(file))


def begun(file: Path) -> bool:
    return any(one.word == "begin" for one in stamps(file))


def hosts_of(folder: Path) -> list[psutil.Process]:
    """The hosts of agents of this registry."""
    found = []
    for one in psutil.process_iter():
        try:
            line = one.cmdline()
        except psutil.Error:
            continue
        if "tenuto.transports.agents.host" in line and any(str(folder) in word for word in line):
            found.append(one)
    return found


def leave(supervisor: Detached, folder: Path) -> None:
    """Stop the supervisor, and the hosts after it."""
    supervisor.stop()
    for one in hosts_of(folder):
        end(one)


def end(process: psutil.Process) -> None:
    try:
        process.terminate()
        process.wait(10)
    except psutil.NoSuchProcess:
        return
    except psutil.TimeoutExpired:
        process.kill()


async def filled(settings: Settings, place: Path, agents: list[tuple[str, ...]], turns: int) -> None:
    """A registry with a task for each of these agents."""
    async with filling(settings) as supervisor:
        for words in agents:
            await agent_task(supervisor, (sys.executable, str(place / "agent.py"), *words), place, turns)


async def agent_task(supervisor: Supervisor, argv: tuple[str, ...], cwd: Path, turns: int) -> None:
    order = desk.Order(
        title="bench",
        objective=f"stamp the time as {json.dumps(argv[2:])}",
        cwd=str(cwd),
        agent=Agent("acp", argv, resumable=True),
        max_attempts=turns,
        policy=dict(UNSTALLED),
    )
    await supervisor.desk.create(OPERATOR, order)
