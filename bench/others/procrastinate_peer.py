"""Procrastinate, measured: procrastinate_peer.py MODE URL FILE COUNT, where MODE is rate, latency, effect or owed."""

import asyncio
import json
import sys
import time
from pathlib import Path

import procrastinate

mode, url, file, count = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))
begun: asyncio.Queue[float] = asyncio.Queue()


@app.task(name="nothing")
async def nothing() -> None:
    """Say when it began."""
    begun.put_nowait(time.time())


@app.task(name="intent", retry=2)
def intent() -> None:
    """Leave a mark, take a second, and be done."""
    with file.open("a") as marks:
        marks.write("effect\n")
    time.sleep(1.0)
    file.with_suffix(".done").touch()


async def main() -> None:
    """Do what the mode says."""
    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
            if mode == "effect":
                await intent.defer_async()
        match mode:
            case "rate":
                began = time.perf_counter()
                for _ in range(count):
                    await nothing.defer_async()
                await app.run_worker_async(wait=False, concurrency=1, install_signal_handlers=False)
                print(json.dumps(3 * count / (time.perf_counter() - began)))  # deferred, taken, finished
            case "latency":
                worker = asyncio.create_task(app.run_worker_async(install_signal_handlers=False))
                found = []
                for number in range(count):
                    await asyncio.sleep(0.05 + 0.0037 * (number % 10))
                    moment = time.time()
                    await nothing.defer_async()
                    found.append(await begun.get() - moment)
                print(json.dumps(found))
                worker.cancel()
                await asyncio.gather(worker, return_exceptions=True)
            case "effect":
                await app.run_worker_async()
            case "owed":
                jobs = await app.job_manager.list_jobs_async()
                print(json.dumps(sum(job.status in ("todo", "doing") for job in jobs)))


asyncio.run(main())
