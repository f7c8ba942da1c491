"""What the doctor and the keepers need of the entrances, and no more."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from tenuto.config import Settings
from tenuto.model.faults import Refused
from tenuto.ports import Clock, Minter
from tenuto.surfaces.cli.entrances import Glance

PRESENT_HOLDERS = ("live", "stale-alive", "stop-fenced")


class Outside(Protocol):
    """One configuration, its clock and its identities, and the supervisor at a glance."""

    clock: Clock
    minter: Minter

    @property
    def settings(self) -> Settings: ...

    def now(self) -> datetime: ...

    def glance(self) -> Glance: ...


def unused(outside: Outside) -> None:
    """Raises Refused while a supervisor uses the registry, or may."""
    glance = outside.glance()
    if glance.standing in PRESENT_HOLDERS or (glance.standing == "fresh-dead" and not glance.near):
        raise Refused(f"a supervisor uses this registry: pid {glance.pid} on {glance.host}", see="tenuto stop")
