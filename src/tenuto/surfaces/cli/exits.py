"""How a command ends: the exit codes, and a failure as one value that a person and a script both can read.

The codes are part of the contract with scripts and never change their meaning. Every failure has a sentence and, where
there is one, its mend; nothing ends in a traceback but a fault of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from tenuto.model import faults


class Exit(IntEnum):
    """What a script may rely on."""

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    NO_SUPERVISOR = 3
    REFUSED = 4
    CONFLICT = 5
    UNKNOWN = 6
    UNSUPPORTED = 7
    NEEDS_PERSON = 8
    DETACHED = 130


#: The exit code of an error by the code it carries in the API's one error shape.
BY_CODE: Mapping[str, Exit] = {
    "mistake": Exit.WRONG_USE,
    "not_found": Exit.WRONG_USE,
    "not_allowed": Exit.REFUSED,
    "refused": Exit.REFUSED,
    "busy": Exit.REFUSED,
    "conflict": Exit.CONFLICT,
    "duplicate": Exit.CONFLICT,
    "back_pressure": Exit.REFUSED,
    "rate_limited": Exit.REFUSED,
    "no_supervisor": Exit.NO_SUPERVISOR,
    "out_of_reach": Exit.NO_SUPERVISOR,
    "unknown_outcome": Exit.UNKNOWN,
    "unsupported_version": Exit.UNSUPPORTED,
    "corrupt": Exit.FAILED,
    "storage_full": Exit.FAILED,
}

#: The exit code of an error whose code is not known here, by its HTTP status.
BY_STATUS: Mapping[int, Exit] = {
    400: Exit.WRONG_USE,
    401: Exit.REFUSED,
    403: Exit.REFUSED,
    404: Exit.WRONG_USE,
    409: Exit.CONFLICT,
    413: Exit.WRONG_USE,
    422: Exit.WRONG_USE,
    423: Exit.REFUSED,
    429: Exit.REFUSED,
    503: Exit.NO_SUPERVISOR,
}


class Failure(Exception):
    """A command that cannot be done: the API's error shape, with the exit code and the mend."""

    def __init__(
        self,
        code: str,
        message: str,
        exit_code: Exit | None = None,
        *,
        mend: str = "",
        field: str | None = None,
        because: object = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.exit = exit_code if exit_code is not None else BY_CODE.get(code, Exit.FAILED)
        self.mend = mend
        self.field = field
        self.because = because

    def shape(self) -> dict[str, object]:
        """The one error shape, as `--json` prints it."""
        told: dict[str, object] = {"code": self.code, "message": self.message, "exit": int(self.exit)}
        for name in ("mend", "field", "because"):
            value = getattr(self, name)
            if value:
                told[name] = value
        return {"error": told}


def no_supervisor(detail: str = "") -> Failure:
    """Nobody answers at the socket, and the verb changes something."""
    said = "no supervisor can be reached" + (f" ({detail})" if detail else "")
    return Failure("no_supervisor", said, mend="tenuto start")


def of_fault(fault: Exception) -> Failure | None:
    """The failure that a fault of the model is to a caller; None for anything else."""
    match fault:
        case faults.Refused():
            return Failure("refused", fault.message, field=fault.field, mend=fault.see or "", because=fault.message)
        case faults.Mistake():
            return Failure(fault.code, fault.message, field=fault.field, mend=fault.see or "")
        case faults.NoSupervisor():
            return no_supervisor(str(fault))
        case faults.Corrupt():
            return Failure("corrupt", str(fault), mend="tenuto db check")
        case faults.UnsupportedVersion():
            return Failure(
                "unsupported_version", str(fault), mend="use the version of tenuto that wrote it, or a later"
            )
        case faults.OutOfReach():
            said = f"the registry's database cannot be reached ({fault})"
            return Failure("out_of_reach", said, Exit.NO_SUPERVISOR, mend="tenuto doctor")
        case faults.StorageFull():
            return Failure("storage_full", str(fault), mend="make room on the disk")
        case _:
            return None


def of_answer(status: int, body: object) -> Failure:
    """The failure that an HTTP answer of 400 or more tells of; an unreadable body is told by its status alone."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        code = BY_STATUS.get(status, Exit.FAILED)
        return Failure("http", f"the supervisor answered with status {status}", code)
    word = str(error.get("code", "http"))
    known = BY_CODE.get(word)
    see = str(error["see"]) if error.get("see") else ""
    return Failure(
        word,
        str(error.get("message", f"status {status}")),
        known if known is not None else BY_STATUS.get(status, Exit.FAILED),
        mend=see or ("tenuto start" if word == "no_supervisor" else ""),
        field=str(error["field"]) if error.get("field") else None,
        because=error.get("because"),
    )
