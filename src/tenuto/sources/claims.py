"""Who has a unit, by the word of its source: one rule for every source that keeps claims.

A claim is taken where nobody has the unit, or by whoever has it already, or from names whose hold is known to be over.
What somebody has put in flight by hand, with no name, is theirs.
"""

from __future__ import annotations

from tenuto.model.chain import Foreign, Hold, Record, Unit, UnitState


def refusal(unit: Unit | None, hold: Hold) -> Foreign | None:
    """Why a unit cannot be claimed; None where it can, or is claimed by this name already."""
    if unit is None:
        return Foreign(f"unit {hold.unit} is not in the source any more", None)
    if unit.state is UnitState.DONE:
        return Foreign(f"unit {hold.unit} was settled by somebody else", unit)
    if unit.state is UnitState.IN_FLIGHT and unit.claimed_by != hold.by and unit.claimed_by not in hold.over:
        return Foreign(f"unit {hold.unit} is worked on by {unit.claimed_by or 'somebody else'}", unit)
    return None


def taken(unit: Unit, what: Record) -> Foreign | None:
    """Why nothing may be written about a unit: somebody else has it now."""
    if unit.claimed_by is not None and unit.claimed_by != what.claim:
        return Foreign(f"unit {what.unit} is worked on by {unit.claimed_by}", unit)
    return None
