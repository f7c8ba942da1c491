"""What the doctor and the keeper need of the entrances, and no more."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from tenuto.config import Settings
from tenuto.ports import Clock, Minter
from tenuto.surfaces.cli.entrances import Glance


class Outside(Protocol):
    """One configuration, its clock and its identities, and the supervisor at a glance."""

    clock: Clock
    minter: Minter

    @property
    def settings(self) -> Settings: ...

    def now(self) -> datetime: ...

    def glance(self) -> Glance: ...
