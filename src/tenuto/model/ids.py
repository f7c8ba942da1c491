"""Names of things.

Every durable thing has one identifier, made once and never reused: a letter for its kind, a dash, and a
time-ordered UUID in 26 characters of Crockford's base 32. Identifiers are made outside the core (identity is
an argument there, as time is); this module only says how they look and how a command is marked in a prompt.
"""

from __future__ import annotations

import re
from typing import NewType

RunId = NewType("RunId", str)
TaskId = NewType("TaskId", str)
ConversationId = NewType("ConversationId", str)
AttemptId = NewType("AttemptId", str)
CommandId = NewType("CommandId", str)
WaitId = NewType("WaitId", str)
WakeId = NewType("WakeId", str)
MessageId = NewType("MessageId", str)
ReportId = NewType("ReportId", str)
TextId = NewType("TextId", str)
ReconciliationId = NewType("ReconciliationId", str)
ObservationId = NewType("ObservationId", str)
TokenId = NewType("TokenId", str)
ChainId = NewType("ChainId", str)
LinkId = NewType("LinkId", str)
PermissionId = NewType("PermissionId", str)
LimitId = NewType("LimitId", str)
MandateId = NewType("MandateId", str)
ProposalId = NewType("ProposalId", str)
ReviewId = NewType("ReviewId", str)
WorktreeId = NewType("WorktreeId", str)
PhaseId = NewType("PhaseId", str)

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
LETTERS = {
    "run": "r",
    "task": "t",
    "conversation": "v",
    "attempt": "a",
    "command": "c",
    "wait": "w",
    "wake": "k",
    "message": "m",
    "report": "p",
    "text": "x",
    "reconciliation": "n",
    "observation": "o",
    "token": "y",
    "registry": "g",
    "chain": "h",
    "link": "j",
    "permission": "e",
    "limit": "l",
    "mandate": "d",
    "proposal": "q",
    "review": "z",
    "worktree": "b",
    "phase": "f",
}
SHAPE = re.compile(r"[a-z]-[0-9a-hjkmnp-tv-z]{26}")


def spelled(kind: str, number: int) -> str:
    """The identifier of a `kind` for a 128-bit `number`; raises KeyError for a kind that has no letter."""
    digits = []
    for _ in range(26):
        number, digit = divmod(number, 32)
        digits.append(ALPHABET[digit])
    return f"{LETTERS[kind]}-{''.join(reversed(digits))}"


def marker(command: CommandId) -> str:
    """The line that stands in a prompt so that later evidence can be bound to exactly this command."""
    return f"[tenuto:{command}]"


def short(identifier: str) -> str:
    """The last eight characters, which are random and enough for a person to tell things apart."""
    return f"{identifier[:2]}{identifier[-8:]}"
