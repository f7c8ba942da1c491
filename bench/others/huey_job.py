"""A job of turns as Huey is used: a task that runs one turn and asks for the next.

huey_job.py DATABASE STAMPS TURNS SECONDS. The consumer serves what is queued; a process that starts asks for the first
turn once, when the database is new.
"""

import subprocess
import sys
from pathlib import Path

from huey import SqliteHuey

database, stamps, turns, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
new = not Path(database).exists()
huey = SqliteHuey("midturn", filename=database, fsync=True)


@huey.task(retries=2)
def turn(number: int) -> None:
    """Run one turn of the agent, then ask for the next."""
    agent = Path(__file__).with_name("agent.sh")
    subprocess.run(["bash", agent, stamps, f"turn-{number}", seconds, str(turns)], check=True, capture_output=True)
    if number + 1 < turns:
        turn(number + 1)


if new:
    turn(0)
huey.create_consumer(workers=1, initial_delay=0.01, max_delay=0.1).run()
