"""The steps that carry a registry from each released schema to the present one, each with its statements beside it.

A step only moves forward and gives old records safe, manual defaults. One that a release has gone out with never
changes again: registries were made by it. A registry newer than the program is refused with a clear error, never
guessed at.
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

SEPARATOR = "\n;;\n"


def run_beside(step: str) -> None:
    """Run the statements that lie beside a step, for the database it is run on. `step` is the step's own file."""
    connection = op.get_bind()
    statements = Path(step).with_suffix("") / f"{connection.dialect.name}.sql"
    for statement in statements.read_text(encoding="utf-8").rstrip("\n").split(SEPARATOR):
        connection.exec_driver_sql(statement)
