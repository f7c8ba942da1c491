"""The threads of a supervisor share one arena of the C library's."""

from __future__ import annotations

import os
import subprocess
import sys

#: Threads that allocate what Python leaves to the C library, and how many arenas of their own they were given: each is
#: a reservation at a multiple of 64 MiB.
PROGRAM = """
import sys, threading
from tenuto.wiring.launch import one_arena
if sys.argv[1] == "one" and not one_arena():
    sys.exit("unknown")
there = threading.Barrier(5)
def fill():
    kept = [bytes(2000) for _ in range(50)]
    there.wait(120)
    there.wait(120)
threads = [threading.Thread(target=fill) for _ in range(4)]
for thread in threads:
    thread.start()
there.wait(120)
with open("/proc/self/maps") as maps:
    fields = [line.split() for line in maps]
starts = [int(parts[0].split("-")[0], 16) for parts in fields if len(parts) == 5]
print(sum(start % (64 << 20) == 0 for start in starts))
there.wait(120)
"""


def arenas(how: str) -> int:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], check=False, env=clean, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_threads_share_one_arena() -> None:
    assert arenas("one") == 0
    assert arenas("many") > 0
