"""Huey, measured: huey_peer.py MODE DATABASE FILE COUNT, where MODE is rate, latency, effect or owed."""

import json
import sys
import time
from pathlib import Path

from huey import SqliteHuey

mode, database, file, count = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
new = not Path(database).exists()
huey = SqliteHuey("peer", filename=database, fsync=True)


@huey.task()
def nothing() -> float:
    """Say when it began."""
    return time.time()


@huey.task(retries=2)
def intent() -> None:
    """Leave a mark, take a second, and be done."""
    with file.open("a") as marks:
        marks.write("effect\n")
    time.sleep(1.0)
    file.with_suffix(".done").touch()


if mode == "owed":
    print(json.dumps(huey.pending_count() + huey.scheduled_count()))
    sys.exit()
consumer = huey.create_consumer(workers=1, periodic=False, initial_delay=0.01, max_delay=0.01, backoff=1.0)
if mode == "effect":
    if new:
        intent()
    consumer.run()
    sys.exit()
consumer.start()
if mode == "rate":
    began = time.perf_counter()
    asked = [nothing() for _ in range(count)]
    asked[-1].get(blocking=True, timeout=60)
    print(json.dumps(3 * count / (time.perf_counter() - began)), flush=True)  # queued, taken, its result kept
else:
    found = []
    for number in range(count):
        time.sleep(0.05 + 0.0037 * (number % 10))
        moment = time.time()
        found.append(nothing().get(blocking=True, timeout=60, backoff=1.0) - moment)
    print(json.dumps(found), flush=True)
consumer.stop(graceful=True)
