"""What lies in the folder of an agent's host, by name: for the host itself, and for whoever starts it or looks in."""

from __future__ import annotations

from typing import Final

TOKEN_FILE: Final = "token"  # noqa: S105 - the name of a file
LOCK: Final = "host.lock"
JOURNAL: Final = "journal"
IDLE: Final = 900.0
"""Seconds without a turn after which a host goes; the next turn starts another."""
