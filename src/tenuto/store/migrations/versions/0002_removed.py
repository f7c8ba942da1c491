"""A text whose body was removed tells when, and texts that still have one are found by their task.

Bodies that were removed before carry no moment: nobody wrote it down.
"""

from __future__ import annotations

from tenuto.store.migrations import run_beside

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Carry the first schema to the second."""
    run_beside(__file__)
