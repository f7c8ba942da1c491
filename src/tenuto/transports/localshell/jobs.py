"""The list of background jobs, and the status file of each attempt, which is the truth about its end.

The list is written when somebody asks the server; the status file when the job ends. Paths in the list are not
followed: the file of an attempt has a name that follows from the job and the attempt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tenuto.model.tools import Defect, Flaw, JobFacts, JobState
from tenuto.transports.localshell import files, reading
from tenuto.transports.localshell.files import Unreadable
from tenuto.transports.localshell.sessions import JOB, WORD

LIST_LIMIT: Final = 32 * 1024 * 1024
STATUS_LIMIT: Final = 64 * 1024
MOST: Final = 1000
VERSIONS: Final = (1, 2)
STATES: Final[Mapping[str, JobState]] = {
    "starting": JobState.RUNNING,
    "running": JobState.RUNNING,
    "stopping": JobState.RUNNING,
    "retrying": JobState.RUNNING,
    "succeeded": JobState.SUCCEEDED,
    "failed": JobState.FAILED,
    "exited": JobState.FAILED,
    "stopped": JobState.STOPPED,
    "lost": JobState.LOST,
}


@dataclass(frozen=True)
class Listed:
    """A job as the list has it."""

    id: str
    word: str
    attempt: int
    exit_code: int | None
    started_at: datetime | None
    updated_at: datetime | None
    ended_at: datetime | None = None


@dataclass(frozen=True)
class List:
    """The jobs that could be read, by name, and what is wrong with the list."""

    jobs: Mapping[str, Listed]
    defects: tuple[Defect, ...] = ()


def listed(state: int) -> List:
    """The list in a state directory; a list that cannot be read is taken from its copy, and said to be flawed."""
    try:
        return _parsed(files.document("jobs.json", state, LIST_LIMIT))
    except Unreadable as error:
        flaw = Defect(Flaw.UNREADABLE, str(error))
    try:
        return List(_parsed(files.document("jobs.json.bak", state, LIST_LIMIT)).jobs, (flaw,))
    except Unreadable:
        return List({}, (flaw,))


def _parsed(tree: Mapping[str, Any] | None) -> List:
    if tree is None:
        return List({})
    version = tree.get("version")
    if isinstance(version, bool) or version not in VERSIONS:
        return List({}, (Defect(Flaw.UNKNOWN_VERSION, f"jobs.json has version {str(version)[:20]!r}"),))
    found: dict[str, Listed] = {}
    for each in reading.objects(tree, "jobs", MOST):
        job = Listed(
            id=reading.text(each, "job_id", JOB),
            word=reading.text(each, "status", WORD),
            attempt=reading.number(each, "attempts", 100_000),
            exit_code=reading.maybe_code(each, "exit_code"),
            started_at=reading.maybe_moment(each, "last_started_at") or reading.maybe_moment(each, "created_at"),
            updated_at=reading.maybe_moment(each, "updated_at"),
            ended_at=reading.maybe_moment(each, "completed_at"),
        )
        if job.id in found:
            raise Unreadable(f"jobs.json lists {job.id} twice")
        found[job.id] = job
    return List(found)


def looked_at(
    wanted: Collection[str], found: List, state: int, services: Collection[str]
) -> tuple[tuple[JobFacts, ...], tuple[Defect, ...]]:
    """The wanted jobs as they stand, each with its own status file where it wrote one; and what is wrong."""
    defects: list[Defect] = []
    facts: list[JobFacts] = []
    try:
        with files.directory("jobs", state) as folder:
            for name in sorted(wanted):
                if (job := found.jobs.get(name)) is not None:
                    fact, flaw = _job(job, folder, name in services)
                    facts.append(fact)
                    defects += [flaw] if flaw is not None else []
    except Unreadable as error:
        defects.append(Defect(Flaw.UNREADABLE, str(error)))
        known = {fact.id for fact in facts}
        facts += [
            _as_listed(found.jobs[n], n in services) for n in sorted(wanted) if n in found.jobs and n not in known
        ]
    return tuple(facts), tuple(defects)


def _as_listed(job: Listed, service: bool) -> JobFacts:
    state = STATES.get(job.word, JobState.RUNNING)  # a word that is not known may mean that it runs
    if job.word == "exited" and job.exit_code == 0:
        state = JobState.SUCCEEDED
    return JobFacts(
        job.id, state, job.attempt, job.started_at, job.updated_at, job.exit_code, service, ended_at=job.ended_at
    )


def _job(job: Listed, folder: int | None, service: bool) -> tuple[JobFacts, Defect | None]:
    told = _as_listed(job, service)
    if job.word not in STATES:
        return told, Defect(Flaw.UNREADABLE, f"{job.id} has a status that is not known: {job.word}")
    if folder is None or job.word == "retrying":
        return told, None
    name = f"{job.id}-attempt-{job.attempt}.status.json"
    try:
        tree = files.document(name, folder, STATUS_LIMIT)
        if tree is None:
            return told, None
        code, at = reading.maybe_code(tree, "exit_code"), reading.moment(tree, "completed_at")
    except Unreadable as error:
        return told, Defect(Flaw.UNREADABLE, str(error))
    ended = JobState.SUCCEEDED if code == 0 else JobState.FAILED
    if told.state is JobState.RUNNING:
        return JobFacts(
            job.id, ended, job.attempt, job.started_at, at, code, service, corrected=True, ended_at=at
        ), None
    if told.state in (JobState.SUCCEEDED, JobState.FAILED) and (told.state is not ended or job.exit_code != code):
        why = f"{job.id} is {job.word} in the list ({job.exit_code}) and ended with {code} by its own file"
        return told, Defect(Flaw.CONTRADICTORY, why)
    return told, None
