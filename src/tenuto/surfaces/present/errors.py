"""The one shape in which anything that went wrong is told: code, message, and where it helps the field and the mend.

A fault of ours says so and nothing else: its details belong in the log, not in an answer.
"""

from __future__ import annotations

from typing import Any

from tenuto.model.faults import (
    Corrupt,
    Mistake,
    NoSupervisor,
    NotAllowed,
    OutOfReach,
    Refused,
    StorageFull,
    UnsupportedVersion,
)

#: What a caller may be told; everything else is a fault of ours.
NOT_AS_ASKED = (Mistake, NoSupervisor, OutOfReach, StorageFull, Corrupt, UnsupportedVersion)


def explanation(
    code: str, message: str, *, because: str | None = None, field: str | None = None, see: str | None = None
) -> dict[str, Any]:
    """The error shape; keys that say nothing are left out."""
    said = {"code": code, "message": message, "because": because, "field": field, "see": see}
    return {"error": {name: value for name, value in said.items() if value is not None}}


def error(fault: BaseException) -> dict[str, Any]:
    """What a fault is called and says, whichever face tells it."""
    match fault:
        case Refused():
            return explanation(fault.code, fault.message, because=fault.message, field=fault.field, see=fault.see)
        case NotAllowed():
            return explanation(fault.code, fault.message, field=fault.field)
        case Mistake():
            return explanation(fault.code, fault.message, field=fault.field, see=fault.see)
        case NoSupervisor():
            return explanation("no_supervisor", str(fault) or "no supervisor is reachable", see="tenuto start")
        case OutOfReach():
            return explanation(
                "out_of_reach",
                "the registry's database cannot be reached; whether this was done is not known: try again with its key",
                see="tenuto doctor",
            )
        case StorageFull():
            return explanation("storage_full", "the disk has no room for another row", see="tenuto doctor")
        case UnsupportedVersion():
            return explanation("unsupported_version", str(fault), see="tenuto doctor")
        case Corrupt():
            return explanation("corrupt", str(fault), see="tenuto doctor")
        case _:
            return explanation("fault", "something went wrong here; the log says what", see="tenuto logs")
