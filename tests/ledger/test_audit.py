"""A registry that contradicts itself is told of, and never mended in silence."""

from __future__ import annotations

import pytest
from tests.ledger.world import Counting, place, settled_in, turn, wake, written

from tenuto.model.change import Commit
from tenuto.store import tables
from tenuto.store.ledger import TableLedger

pytestmark = pytest.mark.anyio

END = "UPDATE task SET state = 'cancelled', ended_at = 1, disposition_reason = 'x', disposition_source = 'operator'"
_COPIED = [column.name for column in tables.attempt.columns]
_COPY = ", ".join({"id": "'a-2'", "number": "99"}.get(name, name) for name in _COPIED)
SECOND_LIVE = f"""
    DROP INDEX one_live_attempt_per_task;
    INSERT INTO attempt ({", ".join(_COPIED)}) SELECT {_COPY} FROM attempt
"""
OPEN_WAIT = """
    INSERT INTO wait (id, revision, task_id, kind, question, opened_at)
    SELECT 'w-1', 1, id, 'human', '?', 1 FROM task;
    UPDATE wake SET consumed_at = 1
"""
FAILED = "UPDATE command SET state = 'ambiguous'; UPDATE command SET state = 'failed', settled_at = 1"
OLDER = "INSERT INTO event (epoch, n, at, kind, data) VALUES (9, 5, 1, 'finding', '{}'), (8, 6, 1, 'finding', '{}')"

#: What somebody might do to a registry by hand, and what the audit then says.
DEEDS = [
    ("DELETE FROM hold WHERE scope LIKE 'task:%%'", "an open command does not hold its scope"),
    (FAILED, "a command that is settled still holds a scope"),
    (END, "a task that has ended has a pending wake"),
    (f"{OPEN_WAIT}; {END}", "a task that has ended has an open wait"),
    ("DELETE FROM event WHERE n = 2", "events are missing between the first and the last"),
    (OLDER, "events go back to an older epoch"),
    (SECOND_LIVE, "a task has two live attempts"),
]


@pytest.mark.parametrize(("deed", "sentence"), DEEDS)
async def test_a_contradiction_is_found(ledger: TableLedger, ids: Counting, deed: str, sentence: str) -> None:
    here = place(ids)
    await settled_in(ledger, here)
    await written(ledger, Commit(puts=(wake(ids, here.task),)))
    armed = turn(ids, here).commit()
    await written(ledger, armed.then(Commit(facts=armed.facts)))
    assert ledger.check() == ()
    for statement in deed.split(";"):
        await ledger._writer.do(lambda connection, sql=statement: connection.execute(sql))  # type: ignore[misc]
    found = ledger.check()
    assert sentence in [each.sentence for each in found]
    assert all(each.subjects for each in found)
