"""One example of every frame, as it is said: what the golden files are made from.

python -m tests.wire.frames        writes golden/*.json again, after a change that was meant
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from tenuto.model.evidence import Cut, Ending, How, Mark, Presence, Rank
from tenuto.model.ids import AttemptId, CommandId, RunId, TaskId, spelled
from tenuto.transports import wire

GOLDEN = Path(__file__).with_name("golden")
NOW = datetime(2026, 3, 1, 12, 0, 0, 250000, tzinfo=UTC)
COMMAND = CommandId(spelled("command", 0x019CA4F0_1000_7ABC_8123_000000000001))
OTHER = CommandId(spelled("command", 0x019CA4F0_1000_7ABC_8123_000000000002))
TASK = TaskId(spelled("task", 0x019CA4F0_1000_7ABC_8123_000000000003))
RUN = RunId(spelled("run", 0x019CA4F0_1000_7ABC_8123_000000000007))
ATTEMPT = AttemptId(spelled("attempt", 0x019CA4F0_1000_7ABC_8123_000000000004))
TALK = spelled("conversation", 0x019CA4F0_1000_7ABC_8123_000000000005)
REGISTRY = spelled("registry", 0x019CA4F0_1000_7ABC_8123_000000000006)
PAGE = "https://chat.example/c/42"
ENDING = Ending(
    None,
    None,
    None,
    how=How.PAGE,
    stop="complete",
    signals=("status: working\nsummary: half of it\n",),
    signal_count=1,
    output_bytes=1234,
)

EXAMPLES: dict[str, wire.Frame] = {
    "hello": wire.Hello(
        protocol=wire.protocol(),
        kind=wire.ExecutorKind.EXTENSION,
        name="chrome-main",
        instance="4f1c0d3e",
        began_at=NOW,
        incarnation="9b2e77a0c4d1",
        boot="5d0f6c1e",
        epoch=7,
        registry=REGISTRY,
        capabilities=("send", "steer", "interrupt", "open", "close"),
        serves=(PAGE,),
        journal=(wire.Entry(COMMAND, Mark.ACCEPTED, 7, "send", PAGE, TASK), wire.Entry(OTHER, Mark.REVOKED, 6)),
        software="tenuto-extension 0.1.0",
    ),
    "welcome": wire.Welcome(
        protocol=wire.protocol(),
        registry=REGISTRY,
        epoch=8,
        heartbeat=20.0,
        executor="ext:chrome-main",
        sent_at=NOW,
        profiles="0f" * 32,
    ),
    "ready": wire.Ready(8),
    "bye": wire.Bye(wire.Farewell.REPLACED, "a newer instance of ext:chrome-main is connected"),
    "command": wire.Command(
        command=COMMAND,
        kind="send",
        task=TASK,
        epoch=8,
        scopes=(f"task:{TASK}", f"conversation:{PAGE}"),
        marker=f"[tenuto:{COMMAND}]",
        payload={"type": "text", "text": "Go on.\n\n[tenuto:…]"},
        attempt=ATTEMPT,
        conversation=wire.Target(TALK, PAGE),
        preconditions=("exact_conversation", "own_composer", "no_approval", "no_dialog"),
        steps=("submit",),
        deadline=NOW,
        within=3600.0,
    ),
    "received": wire.Received(COMMAND),
    "begun": wire.Begun(COMMAND, NOW),
    "accepted": wire.Accepted(COMMAND, NOW, {"user_turns": "12", "message": "m-77"}),
    "ended": wire.Ended(COMMAND, NOW, ENDING, {"assistant_turns": "12"}),
    "ended_cut": wire.Ended(COMMAND, NOW, Ending(None, 15, Cut.INTERRUPT)),
    "failed": wire.Failed(COMMAND, NOW, "the composer holds text that is not ours", no_effect=True, mendable=True),
    "unknown": wire.Unknown(COMMAND, "its journal entry cannot be read"),
    "revoke": wire.Revoke(COMMAND, 8, "it was revoked before it began"),
    "revoked": wire.Revoked(COMMAND),
    "too_late": wire.TooLate(COMMAND, Mark.BEGUN),
    "inquire": wire.Inquire(41, (wire.Subject(COMMAND, "send", 8, TASK, ATTEMPT),), (wire.Target(TALK, PAGE),)),
    "observation": wire.Observation(
        subject=COMMAND,
        seen_at=NOW,
        age=0.02,
        rank=Rank.JOURNAL,
        query=41,
        command=wire.CommandSeen(
            Mark.ENDED, Presence.ALIVE, Presence.GONE, ending=ENDING, marked_at=NOW, proof={"message": "m-77"}
        ),
    ),
    "observation_page": wire.Observation(
        subject=PAGE,
        seen_at=NOW,
        age=0.5,
        rank=Rank.PAGE,
        facts={"type": "page", "state": "generating", "user_turns": 12},
        digest="ab" * 32,
    ),
    "command_halt": wire.Command(
        command=OTHER,
        kind="interrupt",
        task=TASK,
        epoch=7,
        scopes=("interrupt:a-0123456789abcdefghjkmnp0",),
        marker="[tenuto:c-0123456789abcdefghjkmnp1]",
        payload={"type": "halt", "target": COMMAND, "grace": 10.0},
    ),
    "serving": wire.Serving((PAGE, "https://chat.example/c/43")),
    "ask": wire.Ask("approval-3", wire.Question.OPERATOR, "the page shows an approval card", PAGE),
    "ask_dead_man": wire.Ask("dead-man-1", wire.Question.DEAD_MAN, "nothing of this run moves any more", run=RUN),
    "over": wire.Over((COMMAND, OTHER)),
    "forget": wire.Forget((OTHER,)),
    "ping": wire.Ping(3),
    "pong": wire.Pong(3),
}


def spelled_out(frame: wire.Frame) -> str:
    """A frame as it stands in its golden file: the same object, with line ends for people."""
    return json.dumps(json.loads(wire.dump(frame)), ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    for name, example in EXAMPLES.items():
        (GOLDEN / f"{name}.json").write_text(spelled_out(example), "utf-8")
