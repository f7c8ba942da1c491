"""What the engine needs from the world.

Store, transports, sources and notifiers implement these protocols and never see each other; they meet here. Nothing
in this room does anything.
"""

from __future__ import annotations

from tenuto.ports.basis import Clock, Fuse, Minter, NoFuse
from tenuto.ports.chaining import (
    Checkout,
    Checkouts,
    Forge,
    Forges,
    Found,
    History,
    Playbooks,
    UnitSource,
    UnitSources,
    Worktrees,
)
from tenuto.ports.executing import (
    Accounted,
    Check,
    ClosePage,
    Closing,
    Executor,
    Foreseeing,
    Halt,
    Order,
    Paging,
    PerTask,
    Placed,
    Reply,
    Steer,
    Steering,
    TakeOver,
    Taking,
    Troubled,
    Turn,
)
from tenuto.ports.registry import Ledger, Reader
from tenuto.ports.spooling import Spool, Unreadable, Word
from tenuto.ports.witnessing import Observations, PageWitness, Sessions, ToolWitness, Workspace

__all__ = [
    "Accounted",
    "Check",
    "Checkout",
    "Checkouts",
    "Clock",
    "ClosePage",
    "Closing",
    "Executor",
    "Foreseeing",
    "Forge",
    "Forges",
    "Found",
    "Fuse",
    "Halt",
    "History",
    "Ledger",
    "Minter",
    "NoFuse",
    "Observations",
    "Order",
    "PageWitness",
    "Paging",
    "PerTask",
    "Placed",
    "Playbooks",
    "Reader",
    "Reply",
    "Sessions",
    "Spool",
    "Steer",
    "Steering",
    "TakeOver",
    "Taking",
    "ToolWitness",
    "Troubled",
    "Turn",
    "UnitSource",
    "UnitSources",
    "Unreadable",
    "Word",
    "Workspace",
    "Worktrees",
]
