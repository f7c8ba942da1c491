"""Make docs/reference/cli.md from the help of the program itself.

What `tenuto COMMAND --help` says is what the page says, word for word, so the page cannot tell of an option that is
not there. Run without arguments it writes the page; `--check` writes nothing and ends with 1 when the page is not
what it would write.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from tenuto.surfaces.cli.app import program
from tenuto.surfaces.cli.exits import Exit

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
WIDTH = 100

HEAD = """# The command line

Made by `scripts/docs.py` from the program's own help; change the words there.

Common to all commands:

- `--json` prints one JSON document, or JSON lines where a command goes on (`--follow`, `follow`). Errors then come on
  standard output as `{"error": {"code", "message", "exit", "mend"?, "field"?, "because"?}}`, and as lines on standard
  error as always.
- Texts come from a file, or from standard input as `-`. They are never arguments, which every user of the machine can
  read.
- An identifier may be given whole, or by four or more characters of its beginning or end.
- Reading works without a supervisor and says on standard error that it did.
- In an agent's turn (`TENUTO_TOKEN` is set) the agent's token is used and no other; `TASK` may be left out there.

## Exit codes

| code | meaning |
|---|---|
"""

MEANINGS = {
    Exit.DONE: "done",
    Exit.FAILED: "failed; for `run` and `follow`: the task failed or was cancelled",
    Exit.WRONG_USE: "wrong use: what was given cannot be, and the field is named",
    Exit.NO_SUPERVISOR: "no supervisor can be reached, and the verb needs one",
    Exit.REFUSED: "refused: the reason is printed, and what would change it",
    Exit.CONFLICT: "conflict: the same key came with another request, or something changed meanwhile",
    Exit.UNKNOWN: "unknown outcome: it may have happened; look, do not repeat",
    Exit.UNSUPPORTED: "something outside is of a version that is not known here",
    Exit.NEEDS_PERSON: "waiting for a person: the question is printed, and the command that answers it",
    Exit.DETACHED: "interrupted; `run` and `follow` let go, and the work goes on",
}


def page() -> str:
    """The whole page."""
    lines = [HEAD + "".join(f"| {int(code)} | {MEANINGS[code]} |\n" for code in Exit)]
    for path, told in helped(typer.main.get_command(program), "tenuto", None):
        lines.append(f"## {path}\n\n```text\n{told.rstrip()}\n```\n")
    return "\n".join(lines)


def helped(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    """A command's path and help, and those of the commands below it."""
    context = command.context_class(
        command, info_name=name, parent=parent, terminal_width=WIDTH, help_option_names=["-h", "--help"]
    )
    yield context.command_path, command.get_help(context)
    for below, each in getattr(command, "commands", {}).items():
        if not each.hidden:
            yield from helped(each, below, context)


def main() -> int:
    """Write the page, or with --check compare it."""
    made = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text("utf-8") != made:
            print(f"{PAGE.name} is not what the program says; run scripts/docs.py", file=sys.stderr)
            return 1
        return 0
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(made, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
