"""What the registry may hold: the columns are listed here, and a new one has to be allowed by name.

Nothing in the list can take what was read from a page, a transcript, a cookie or a header: texts are our own, evidence
is coarse, and everything else is identity, lifecycle or a digest.
"""

from __future__ import annotations

import ast
from pathlib import Path

import tenuto
from tenuto.store import tables

ALLOWED = {
    "registry": "id revision created_at held_at held_by merging_off_at merging_off_by one",
    "leadership": """epoch owner host pid started boot_id address taken_at renewed_at expires_at stop_asked_at
        released_at one""",
    "text": "id kind task_id body digest created_at removed_at",
    "run": "id revision title state auto_resume policy coordinator created_at stopped_at",
    "task": """id revision run_id title objective cwd agent acceptance state created_at auto_resume max_attempts parent
        started_at ended_at disposition_reason disposition_source disposition_prior_state disposition_reference
        disposition_verified claim_evidence claim_summary claim_attempt claim_made_at claim_tries standing
        standing_reason paused_at paused_by stalled_at progress_cursor progress_head progress_at progress_without
        progress_streak progress_line progress_reason attempts unsent_in_row faults lease_number active_since_report
        checkpoints last_served_at waiting_since look_at tools health_value health_confidence health_row health_why
        health_mend health_since steered_at informed informed_at told_at max_live max_tokens
        max_cost live_time tokens cost currency spawned_by playbook delivery auto_close unattended slot_from
        queued_at ready_at ready_note account model overloads fresh_sessions session_over""",
    "conversation": """id revision task_id identity executor state lease_number expires_at opened_at parent root
        handoff_to ended_at turns place""",
    "attempt": """id revision task_id number reason anyway idempotency_key cursor_before conversation_id lease_number
        state scheduled_at live_at ended_at outcome detail signal exit_code output_bytes tokens_in tokens_out
        cost currency""",
    "command": """id revision kind task_id attempt_id conversation_id executor state epoch fence scopes created_at
        payload digest deadline armed_at submitted_at settled_at evidence detail released_by verdict late target
        place""",
    "wait": "id revision task_id kind question opened_at subject until attempt_id closed_at closed_by answer",
    "wake": "id revision task_id kind reason not_before created_at anyway asked_by consumed_at consumed_by",
    "message": """id revision task_id sender kind policy text size state created_at not_before corrective carried_by
        tries settled_at party""",
    "report": "id task_id attempt_id kind lines at",
    "sample": "id task_id fence members made_at",
    "sighting": "id task_id subject source rank seen_at made_at digest facts",
    "token": "id revision digest role task_id lease_number created_at revoked_at name expires_at",
    "chain": """id revision run_id state goal repo selector source authorization caps attempt_cap cwd created_at agent
        playbook position processed look_at reason ended_at base phases asks swept seen""",
    "link": """id revision chain_id position predecessor task_id unit place key attempt made_at outcome evidence blocker
        command_id handed_at recorded_at""",
    "mandate": "id revision chain_id forge mode method branches base gate reviews made_at reviewer playbook",
    "proposal": """id revision chain_id task_id unit state number branch base head url opened_at gate_command gate_head
        gate gate_tries reviews merge_command merged_as reason settled_at""",
    "review": "id revision proposal_id task_id number head asked_at verdict findings said_at",
    "worktree": """id revision task_id chain_id repository path branch base state created_at command_id begun_at_commit
        reason ended_at""",
    "phase": """id revision chain_id unit task_id number state opened_at branch url head landing undone_by
        settled_at reason""",
    "permission": """id revision task_id attempt_id command_id request tool what fingerprint asked_at wait_id verdict
        answered_by answered_at words parked_at told_at closed_at outcome""",
    "usagelimit": """id revision account name text first_met_at met_at met_by met until model resets_at closed_at
        closed_by""",
    "hold": "scope command_id",
    "event": "epoch n at kind run_id task_id data",
    "idempotency": "scope key digest result at",
}


def test_no_column_is_there_that_is_not_allowed() -> None:
    found = {name: {column.name for column in table.columns} for name, table in tables.TABLES.items()}
    assert found == {name: set(words.split()) for name, words in ALLOWED.items()}


def test_every_row_type_has_its_table() -> None:
    import typing

    from tenuto.model.change import Row

    assert {shape.cls for shape in tables.ORDER} == set(typing.get_args(Row))


def test_only_the_ledger_makes_an_armed() -> None:
    source = Path(tenuto.__file__).parent
    makers = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Armed"
    }
    assert makers == {"store/transaction.py"}
