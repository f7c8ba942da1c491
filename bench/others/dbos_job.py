"""A job of turns as DBOS is used: a workflow of steps, each of which starts the agent and waits for it.

dbos_job.py DATABASE_URL STAMPS TURNS SECONDS. `launch` recovers what was pending when the process died.
"""

import subprocess
import sys
from pathlib import Path

from dbos import DBOS, SetWorkflowID

url, stamps, turns, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
DBOS(config={"name": "midturn", "system_database_url": url, "run_admin_server": False})


@DBOS.step()
def turn(number: int) -> None:
    """Run one turn of the agent."""
    agent = Path(__file__).with_name("agent.sh")
    subprocess.run(["bash", agent, stamps, f"turn-{number}", seconds, str(turns)], check=True, capture_output=True)


@DBOS.workflow()
def job() -> None:
    """One turn after the other."""
    for number in range(turns):
        turn(number)


DBOS.launch()
with SetWorkflowID("the-job"):
    handle = DBOS.start_workflow(job)  # the same id: the one that is there already
handle.get_result()
DBOS.destroy()
