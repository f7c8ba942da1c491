"""Processes as identities: who runs, who carries a value, and how to end exactly them.

A pid is never trusted alone. On Linux everything here is the standard library and /proc, so
that commands which only ask stay instant; elsewhere psutil answers the same questions.
"""

from tenuto.model.evidence import Presence
from tenuto.transports.processes.ending import Ending, end, end_all, end_belongings, send
from tenuto.transports.processes.identity import Identity
from tenuto.transports.processes.table import (
    Belongings,
    belongings,
    boot_id,
    carriers,
    group_members,
    identity_of,
    presence,
    session_members,
)

__all__ = [
    "Belongings",
    "Ending",
    "Identity",
    "Presence",
    "belongings",
    "boot_id",
    "carriers",
    "end",
    "end_all",
    "end_belongings",
    "group_members",
    "identity_of",
    "presence",
    "send",
    "session_members",
]
