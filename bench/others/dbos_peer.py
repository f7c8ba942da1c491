"""DBOS, measured: dbos_peer.py MODE URL FILE COUNT, where MODE is rate, latency, effect or owed."""

import json
import sys
import time
from pathlib import Path

from dbos import DBOS, SetWorkflowID

mode, url, file, count = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
DBOS(config={"name": "peer", "system_database_url": url, "run_admin_server": False, "log_level": "ERROR"})


@DBOS.step()
def step() -> None:
    """Do nothing, durably."""


@DBOS.workflow()
def steps() -> float:
    """Take the steps; how long that took."""
    began = time.perf_counter()
    for _ in range(count):
        step()
    return time.perf_counter() - began


@DBOS.workflow()
def begun() -> float:
    """Say when it began."""
    return time.time()


@DBOS.step()
def effect() -> None:
    """Leave a mark, then take a second."""
    with file.open("a") as marks:
        marks.write("effect\n")
    time.sleep(1.0)


@DBOS.workflow()
def intent() -> None:
    """One effect, then done."""
    effect()
    file.with_suffix(".done").touch()


if mode != "owed":
    DBOS.launch()
match mode:
    case "rate":
        steps()
        print(json.dumps(count / steps()))
    case "latency":
        queue = DBOS.register_queue("peers", polling_interval_sec=0.01)
        found = []
        for number in range(count):
            time.sleep(0.05 + 0.0037 * (number % 10))
            asked = time.time()
            found.append(queue.enqueue(begun).get_result() - asked)
        print(json.dumps(found))
    case "effect":
        with SetWorkflowID("the-intent"):
            DBOS.start_workflow(intent).get_result()
    case "owed":
        DBOS.launch()
        print(json.dumps(len(DBOS.list_workflows(status=["PENDING", "ENQUEUED"]))))
DBOS.destroy()
