"""Transcripts across the cycle: what is seen, what is asked, what is armed, and what stands after it.

Each is read from top to bottom by stage.py. `>>` is seen, `**` the operator asks, `--` passes, `<<` is done or stands.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.playbooks.stage import Stage

PLAYBOOKS: dict[str, tuple[dict[str, Any], str]] = {
    "the happy path": (
        {},
        """
        << armed send event
        << prompt has "Tidy the attic"
        << because live
        >> files change
        >> ends working next="the other half"
        << armed send idle
        << prompt has "the other half"
        >> files change
        >> ends complete evidence="commit abc"
        << task completed
        << counts attempts=2 verified=0 faults=0
        << wakes 0
        << quiet
        """,
    ),
    "an acceptance check holds, and takes its time": (
        {"check": "check"},
        """
        << armed send event
        >> ends complete evidence="commit abc"
        << armed check
        << because unresolved
        -- 5m
        << nothing
        >> check exits 0
        << task completed
        << counts verified=1
        """,
    ),
    "an acceptance check fails, and the agent is told": (
        {"check": "check"},
        """
        << armed send event
        >> ends complete evidence="commit abc"
        << armed check
        >> check exits 1
        << armed send event
        << prompt has "it exited 1"
        >> ends complete evidence="commit abd"
        << armed check
        >> check exits 0
        << task completed
        """,
    ),
    "a check that is lost is run again, three times in all": (
        {"check": "check"},
        """
        << armed send event
        >> ends complete evidence="commit abc"
        << armed check
        >> check vanishes
        << armed check
        >> check vanishes
        << armed check
        >> check vanishes
        << nothing
        << asks "came to no result 3 times"
        """,
    ),
    "a check over a restart is not doubled": (
        {"check": "check"},
        """
        << armed send event
        >> ends complete evidence="commit abc"
        << armed check
        -- restart
        << nothing
        >> check exits 0
        << task completed
        """,
    ),
    "a claim that hangs on a file is looked at": (
        {"check": "file"},
        """
        << armed send event
        >> holds no
        >> ends complete evidence="out"
        << armed send event
        >> holds unknown
        >> ends complete evidence="out"
        << nothing
        << because claim
        -- 11m
        << asks "cannot be told"
        << nothing
        """,
    ),
    "a turn is cut short, and recovered in a fresh conversation after two looks": (
        {},
        """
        << armed send event
        >> killed
        << nothing
        << because fence
        << counts faults=1 lease=2
        -- 4s
        << armed send recovery
        << prompt has "did not come to its own end"
        >> files change
        >> ends working
        << armed send idle
        << counts faults=0
        >> ends complete evidence=x
        << task completed
        """,
    ),
    "the host dies and the agent goes on: nothing is concluded until it is gone": (
        {},
        """
        << armed send event
        >> host dies
        << because live
        -- 10m
        << nothing
        >> agent is unknown
        -- 30m
        << nothing
        >> agent is gone
        << because fence
        -- 3s
        << armed send recovery
        """,
    ),
    "a damaged journal ends nothing, and a person is asked once": (
        {},
        """
        << armed send event
        >> host dies
        >> journal damaged
        << because live
        << asks "cannot be followed"
        -- 20m
        << nothing
        >> everything gone
        << because human
        << nothing
        ** answer "go on"
        -- 5s
        << armed send recovery
        """,
    ),
    "the workspace keeps changing": (
        {},
        """
        << armed send event
        >> killed
        << because fence
        >> files change
        -- 1s
        >> files change
        -- 6s
        << armed send recovery
        """,
    ),
    "faults run out and a person is asked; durable progress fills them up": (
        {},
        """
        << armed send event
        >> killed
        -- 4s
        << armed send recovery
        >> killed
        -- 4s
        << armed send recovery
        >> files change
        >> everything gone
        << counts faults=1
        -- 4s
        << armed send recovery
        >> killed
        -- 4s
        << armed send recovery
        >> killed
        -- 4s
        << armed send recovery
        >> killed
        -- 4s
        << nothing
        << asks "keep being cut short"
        ** answer "go on"
        -- 4s
        << armed send event
        << prompt has "did not come to its own end"
        << counts faults=0
        """,
    ),
    "lost at its start, resumable: released by policy, then verified": (
        {},
        """
        << armed send event
        >> next lost
        >> ends working
        << armed send idle
        << command released
        -- 4s
        << armed send recovery
        >> ends complete evidence=x
        << task completed
        """,
    ),
    "lost at its start, not resumable: a person says what happened": (
        {"resumable": False},
        """
        << armed send event
        >> next lost
        >> ends working
        << armed send idle
        << command ambiguous
        << because unresolved
        << asks "What did it do"
        -- 30m
        << nothing
        << slot back
        ** release not-happened
        << because human
        ** answer "run it again"
        -- 4s
        << armed send event
        << prompt has "run it again"
        """,
    ),
    "ambiguous and released: what rode in it follows the verdict": (
        {},
        """
        << armed send event
        ** say "mind the roof"
        >> next damaged
        >> ends working
        << armed send idle
        << command ambiguous
        << message carried
        -- 5m
        << nothing
        ** release not-happened
        << message retry_wait
        -- 4s
        << armed send recovery
        << prompt has "mind the roof"
        << message delivered
        """,
    ),
    "ambiguous and released as happened": (
        {},
        """
        << armed send event
        ** say "mind the roof"
        >> next damaged
        >> ends working
        << armed send idle
        ** release happened
        << message delivered
        -- 4s
        << armed send recovery
        << prompt lacks "mind the roof"
        """,
    ),
    "a released command is acknowledged late": (
        {},
        """
        << armed send event
        ** pause
        >> next lost
        ** continue
        >> ends working
        << armed send manual
        << command released
        >> journal accepted late
        << command acknowledged
        << late
        << nothing
        """,
    ),
    "what still runs of a released turn holds the next one": (
        {},
        """
        << armed send event
        >> host dies
        >> next damaged
        >> everything gone
        -- 4s
        << armed send recovery
        ** release not-happened
        -- 1s
        >> agent is alive
        -- 10s
        << nothing
        << because unresolved
        >> agent is gone
        -- 10s
        << armed send recovery
        """,
    ),
    "stall: warned, paused, resumed": (
        {},
        """
        << armed send event
        >> ends working
        << armed send idle
        >> ends working
        << armed send idle
        >> ends working
        << armed send idle
        << counts without=3 stalled=0
        << noted task.stall_warned
        >> ends working
        << armed send idle
        >> ends working
        << armed send idle
        >> ends working
        << nothing
        << because stalled
        << counts without=6 stalled=1
        ** resume refused
        ** continue
        << nothing
        ** resume stalled
        << armed send manual
        << counts without=0 stalled=0
        """,
    ),
    "stall: anyway is for one attempt, and durable progress ends the pause": (
        {"policy": {"stall_pause": 2}},
        """
        << armed send event
        >> ends working
        << armed send idle
        >> ends working
        << because stalled
        ** anyway
        -- 4s
        << armed send manual anyway
        >> ends working
        << nothing
        << because stalled
        ** anyway
        -- 4s
        << armed send manual anyway
        >> files change
        >> ends working
        << armed send idle
        << counts without=0 stalled=0
        """,
    ),
    "progress of its own saying is believed three times in a row": (
        {"policy": {"stall_pause": 2}},
        """
        << armed send event
        >> ends working progress=one
        << armed send idle
        >> ends working progress=two
        << armed send idle
        >> ends working progress=three
        << armed send idle
        << counts without=0
        >> ends working progress=four
        << armed send idle
        << counts without=1
        >> ends working progress=five
        << because stalled
        """,
    ),
    "a workspace that cannot be measured neither counts nor resets": (
        {"policy": {"stall_pause": 2}},
        """
        << armed send event
        >> ends working
        << armed send idle
        << counts without=1
        >> directory unknown
        >> ends working
        << armed send idle
        << counts without=1
        >> directory git
        >> ends working
        << because stalled
        """,
    ),
    "a checkpoint during a turn of 25 minutes: asked once, and again after another interval": (
        {},
        """
        << armed send event
        -- 19m
        << checkpoint none
        -- 6m
        << checkpoint waits
        >> files change
        >> ends working
        << armed send idle
        << prompt has "tenuto-report"
        << counts checkpoints=1
        -- 10m
        << checkpoint none
        >> files change
        >> ends working
        << armed send idle
        << checkpoint none
        -- 12m
        << checkpoint waits
        << counts checkpoints=2
        """,
    ),
    "a checkpoint that is answered starts the interval again": (
        {},
        """
        << armed send event
        -- 25m
        >> files change
        >> ends working report="half of it"
        << armed send idle
        << reports 1
        -- 18m
        << counts checkpoints=1
        >> agent says progress "nearly"
        -- 15m
        << checkpoint none
        -- 7m
        << checkpoint waits
        """,
    ),
    "the limit of the budget": (
        {"max_attempts": 2},
        """
        << armed send event
        >> ends working
        << armed send idle
        >> ends working
        << nothing
        << because cap
        << counts attempts=2
        ** anyway
        -- 4s
        << armed send manual anyway
        >> ends working
        << nothing
        ** continue
        << nothing
        << because cap
        ** policy max-attempts=5
        << armed send manual
        """,
    ),
    "a restart in the middle of a turn": (
        {},
        """
        << armed send event
        -- restart
        << nothing
        << because live
        -- 10m
        >> ends working
        << armed send idle
        -- restart twice
        << nothing
        >> ends complete evidence=x
        << task completed
        """,
    ),
    "the supervisor dies between commit and hand-over": (
        {},
        """
        << armed send event
        >> next never
        >> ends working
        << armed send idle
        << command acknowledged
        << armed send idle
        << counts attempts=2 unsent=0
        """,
    ),
    "the clock goes back by an hour, in a turn and at rest": (
        {},
        """
        << armed send event
        -- 10m
        -- clock back 1h
        << because live
        >> ends working
        << armed send idle
        << counts lease=2
        >> next unmendable
        >> ends working
        << armed send idle
        -- clock back 1h
        << armed send idle
        """,
    ),
    "the clock goes back after a turn was cut short": (
        {},
        """
        << armed send event
        -- 30m
        >> killed
        << because fence
        -- clock back 1h
        -- 4s
        << armed send recovery
        """,
    ),
    "a laptop that slept": (
        {},
        """
        << armed send event
        -- asleep 8h
        << checkpoint waits
        << counts checkpoints=1
        >> ends working
        << armed send idle
        << counts lease=2
        << checkpoint none
        """,
    ),
    "a manual policy, and continue": (
        {"manual": True},
        """
        << nothing
        << because manual
        ** continue
        << armed send manual
        ** continue
        << nothing
        >> ends working
        << armed send manual
        >> ends working
        << nothing
        << because manual
        ** policy auto-resume=on
        << armed send idle
        """,
    ),
    "a pause stops what is next and not what runs": (
        {},
        """
        << armed send event
        ** pause
        << because live
        >> ends working
        << nothing
        << because paused
        ** continue
        << armed send manual
        >> ends working
        << because paused
        ** resume
        << armed send idle
        """,
    ),
    "a stop during a live turn": (
        {},
        """
        << armed send event
        ** stop
        << armed interrupt
        << task cancelled
        << wakes 0
        << quiet
        -- 1h
        << nothing
        """,
    ),
    "a stop of an agent that cannot be ended": (
        {},
        """
        << armed send event
        >> deaf
        ** stop
        << armed interrupt
        << nothing
        -- 9s
        << armed interrupt
        -- 60s
        << armed interrupt
        << asks "could not be ended"
        >> hears
        -- 120s
        << armed interrupt
        << task cancelled
        << asks
        << quiet
        << wakes 0
        """,
    ),
    "a stopped turn that ends by itself is heard of and leads to nothing": (
        {},
        """
        << armed send event
        >> deaf
        ** stop
        << armed interrupt
        >> ends blocked needs="a colour"
        << task cancelled
        << noted late.word
        << wakes 0
        << quiet
        """,
    ),
    "a dependency resolves by itself": (
        {},
        """
        << armed send event
        >> ends blocked needs="path:out.txt"
        << because dependency
        -- 20m
        << nothing
        << slot back
        >> path out.txt
        -- 31s
        << armed send dependency
        >> ends blocked needs="until:2026-03-01T14:00:00+00:00"
        << because dependency
        -- 1h
        << nothing
        -- 1h
        << armed send dependency
        """,
    ),
    "a dependency on a task that is stopped becomes a question": (
        {},
        """
        << armed send event
        >> ends blocked needs="which colour?"
        -- another task
        << armed send event
        ** waits for 1
        ** answer blue
        -- 10s
        << because dependency
        ** stop 1
        << armed interrupt
        -- 31s
        << nothing
        << because human
        << asks "is cancelled"
        """,
    ),
    "a dependency on a task that completes": (
        {},
        """
        << armed send event
        >> ends blocked needs="which colour?"
        -- another task
        << armed send event
        ** waits for 1
        ** answer blue
        -- 10s
        << because dependency
        >> ends complete evidence=x
        -- 31s
        << armed send event
        << because live
        """,
    ),
    "no signal: a reminder, then the stall rule": (
        {"policy": {"stall_pause": 2}},
        """
        << armed send event
        >> ends silent
        << armed send idle
        << prompt has "without a tenuto block"
        >> ends twice
        << nothing
        << because stalled
        """,
    ),
    "a plain program without a signal is never run again unasked": (
        {"resumable": False},
        """
        << armed send event
        >> ends silent
        << nothing
        << asks "Is the work done"
        -- 2h
        << nothing
        ** answer "run it once more"
        << armed send event
        << prompt has "run it once more"
        """,
    ),
    "a plain program without a signal is judged by its check": (
        {"resumable": False, "check": "check"},
        """
        << armed send event
        >> ends silent
        << armed check
        >> check exits 1
        << nothing
        << asks "not run again unasked"
        """,
    ),
    "a plain program that fails is a person's": (
        {"resumable": False, "check": "check"},
        """
        << armed send event
        >> ends complete evidence=x exit=3
        << nothing
        << asks "exit code 3"
        """,
    ),
    "a plain program that is killed is a person's": (
        {"resumable": False},
        """
        << armed send event
        >> killed
        << nothing
        << asks "cut short"
        """,
    ),
    "what cannot be started is tried again, later and later, and then a person is asked": (
        {},
        """
        >> next unmendable unmendable unmendable unmendable
        << armed send event
        >> ends working
        << armed send idle
        << counts attempts=1 unsent=1
        -- 4s
        << nothing
        -- 3s
        << armed send idle
        -- 20s
        << armed send idle
        -- 80s
        << armed send idle
        -- 6m
        << armed send idle
        << counts attempts=2 unsent=0
        """,
    ),
    "what a person must mend is asked at once": (
        {},
        """
        >> next missing
        << armed send event
        >> ends working
        << armed send idle
        << asks "could not be started"
        -- 1h
        << nothing
        ** answer "mended"
        << armed send event
        """,
    ),
    "blocked on a person: continue waits, anyway passes once and leaves the question": (
        {},
        """
        << armed send event
        >> ends blocked needs="which colour?"
        << because human
        ** continue
        << nothing
        ** anyway
        << nothing
        -- 4s
        << armed send manual anyway
        << asks "which colour?"
        >> ends working
        << because human
        ** answer "blue"
        << armed send event
        << prompt has "blue"
        """,
    ),
    "continue during a turn is queued for the next": (
        {"manual": True},
        """
        ** continue
        << armed send manual
        ** continue
        -- 10m
        << nothing
        >> ends working
        << armed send manual
        >> ends working
        << nothing
        """,
    ),
    "everything is held: a live turn ends all the same, and nothing follows": (
        {},
        """
        << armed send event
        ** hold
        -- 3s
        << because held
        >> ends working
        << because held
        ** anyway
        << nothing
        ** unhold
        -- 4s
        << armed send manual anyway
        """,
    ),
    "anyway passes an unknown workspace, never one that is gone": (
        {},
        """
        << armed send event
        >> directory missing
        >> ends blocked needs="colour"
        ** anyway
        -- 2m
        << nothing
        << because evidence
        >> directory unknown
        -- 2m
        << armed send manual anyway
        """,
    ),
    "the executor is away for long: nothing spins, nothing is armed": (
        {},
        """
        << armed send event
        >> executor away
        >> ends working
        << because executor
        -- 30m
        << nothing
        >> executor back
        << armed send idle
        """,
    ),
    "a late word from a fenced conversation": (
        {},
        """
        << armed send event
        >> killed
        -- 4s
        << armed send recovery
        >> agent says late complete
        << noted late.word
        << because live
        """,
    ),
    "an agent asks in the middle of its turn": (
        {},
        """
        << armed send event
        >> agent says wait "which colour?"
        << because live
        -- 5m
        >> ends working
        << because human
        ** answer "blue"
        << armed send event
        """,
    ),
    "an agent completes in the middle of its turn": (
        {},
        """
        << armed send event
        >> agent says complete "commit abc"
        << task completed
        -- 5m
        >> ends complete evidence="commit abc"
        << task completed
        << nothing
        << quiet
        """,
    ),
    "a host that takes its time": (
        {},
        """
        << armed send event
        >> next slow
        >> ends working
        << armed send idle
        << because unresolved
        -- 1m
        << nothing
        >> starts
        << because live
        >> ends working
        << armed send idle
        """,
    ),
    "a rest of ten minutes gives the slot back": (
        {"manual": True},
        """
        ** continue
        << armed send manual
        >> ends working
        << slot kept
        -- 9m
        << slot kept
        -- 2m
        << slot back
        ** continue
        << armed send manual
        << slot kept
        """,
    ),
}


@pytest.mark.parametrize("name", PLAYBOOKS)
async def test_it_goes_as_written(name: str, tmp_path: Path) -> None:
    settings, script = PLAYBOOKS[name]
    stage = Stage(tmp_path)
    await stage.open()
    try:
        await stage.create(**settings)
        await stage.play(script)
        assert all(times == 1 for times in stage.hall.effects.values())
    finally:
        await stage.close()
