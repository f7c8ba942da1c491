"""The first schema, as the statements in the files beside this one."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SEPARATOR = "\n;;\n"


def upgrade() -> None:
    """Make every table, index and trigger."""
    connection = op.get_bind()
    statements = Path(__file__).with_suffix("") / f"{connection.dialect.name}.sql"
    for statement in statements.read_text(encoding="utf-8").split(SEPARATOR):
        connection.exec_driver_sql(statement)
