"""An agent small enough to read: it tidies the text files of a git repository, one file per turn.

It plays the part of an agent program in demonstrations and tests. It keeps no state of its own: which files are done
is read from commit trailers, so any number of crashes, restarts and second copies of the prompt lead to the same
history, one commit per file. After a crash it looks at the working tree first and finishes a half-done file only when
what it finds there is exactly its own edit; it never commits or discards anybody else's changes.

Run it with the repository as working directory and a prompt on stdin:

    TIDY_DIE_AT=N    kill itself with SIGKILL at the N-th file, after the edit and before the commit, once
    TIDY_PACE=S      wait S seconds before the edit, so that a turn can be interrupted
"""

# A program, not a package, and its output is what it has to say:
# ruff: noqa: INP001, T201

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

SUFFIXES = (".md", ".rst", ".txt", ".py")
REPORT = "REPORT.md"
REPORT_HEAD = "# Dead links\n\n"
LARGEST = 1024 * 1024
IDENTITY = ("-c", "user.name=tidy-docs", "-c", "user.email=tidy-docs@localhost", "-c", "commit.gpgsign=false")


# --- git --------------------------------------------------------------------------------------------


def git(*arguments: str) -> bytes:
    """What git prints; a failing git ends the program with its words."""
    done = subprocess.run(["git", *arguments], capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def names(listing: bytes) -> list[str]:
    return [os.fsdecode(name) for name in listing.split(b"\0") if name]


def tracked_texts() -> list[str]:
    """Tracked regular text files, sorted; a name with a line break cannot stand in a trailer and is left out."""
    entries = [entry.split("\t", 1) for entry in names(git("ls-files", "-s", "-z"))]
    found = {path for mode, path in entries if mode.startswith("100") and path.endswith(SUFFIXES)}
    return sorted(path for path in found if path != REPORT and path.isprintable() and path.strip() == path)


def checked() -> set[str]:
    """The files whose trailer stands in the history of HEAD."""
    log = git("log", "--format=%(trailers:key=Checked,valueonly,separator=%x00)%x00")
    return {name.strip("\n") for name in names(log)}


def dirty() -> set[str]:
    """Tracked files that differ from HEAD, staged or not, and the report if it is new."""
    changed = set(names(git("diff", "--name-only", "--no-renames", "-z", "HEAD")))
    fresh = git("ls-files", "--others", "-z", "--", f":(literal){REPORT}")
    return changed | set(names(fresh))


def committed(path: str) -> bytes | None:
    """The file as HEAD would check it out, or None when HEAD has no such file."""
    if not git("ls-tree", "-z", "HEAD", "--", f":(literal){path}"):
        return None
    return git("cat-file", "--filters", f"HEAD:{path}")


def commit(paths: list[str], file: str, what: str) -> str:
    """One commit of these paths with the file's trailer; gives HEAD."""
    if paths:
        git("add", "-f", "--", *(f":(literal){path}" for path in paths))
    git(*IDENTITY, "commit", "--quiet", "--allow-empty", "-m", f"Tidy {file}: {what}", "-m", f"Checked: {file}")
    return git("rev-parse", "HEAD").decode().strip()


# --- checks -----------------------------------------------------------------------------------------

MD_LINK = re.compile(r"!?\[[^\]\n]*\]\(\s*(<[^>\n]*>|[^\s)]+)")
MD_DEFINITION = re.compile(r" {0,3}\[[^\]\n]+\]:\s*(<[^>\n]*>|\S+)")
RST_LINK = re.compile(r"`[^`<\n]*<([^>\n]+)>`_|^\.\. (?:_[^:\n]+|image|figure|include):+\s*(\S+)")
ATX = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
RST_RULE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}")
SETEXT_RULE = re.compile(r"={3,}|-{3,}")
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|#|/")


@dataclass(frozen=True)
class Tidied:
    """A file after its fixes: the new content, what was fixed, and the dead links (line, target) that stay."""

    content: bytes
    fixes: tuple[str, ...]
    dead: tuple[tuple[int, str], ...]


def prose(lines: list[str]) -> list[bool]:
    """For each line of a Markdown file, whether it stands outside code fences."""
    outside, fence = [], ""
    for line in lines:
        mark = FENCE.match(line)
        if fence:
            outside.append(False)
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        else:
            outside.append(not mark)
            fence = mark[1] if mark else ""
    return outside


def unused(title: str, taken: set[str]) -> str:
    """The title with the lowest number that no other heading has."""
    number = 2
    while f"{title} ({number})" in taken:
        number += 1
    return f"{title} ({number})"


def number_headings(lines: list[str], kind: str) -> list[str]:
    """Give the second and later headings of one text a number; changes `lines`, gives the new titles."""
    found: list[tuple[int, str]] = []
    outside = prose(lines) if kind == ".md" else [True] * len(lines)
    for at, line in enumerate(lines):
        rule = lines[at + 1].strip() if at + 1 < len(lines) and outside[at + 1] else ""
        if not outside[at]:
            continue
        if kind == ".md" and (atx := ATX.fullmatch(line)):
            found.append((at, atx[1]))
            continue
        if not line.strip() or line[0].isspace() or not line[0].isalnum():
            continue
        first = at == 0 or not lines[at - 1].strip()  # a rule below a paragraph is no heading's
        setext = kind == ".md" and first and SETEXT_RULE.fullmatch(rule)
        ruled = kind == ".rst" and RST_RULE.fullmatch(rule) and len(rule) >= len(line.strip())
        if setext or ruled:
            found.append((at, line.strip()))
    taken = {title for _, title in found}
    seen: set[str] = set()
    renamed = []
    for at, title in found:
        if title and title in seen:
            new = unused(title, taken)
            taken.add(new)
            renamed.append(new)
            rename(lines, at, title, new, underlined=kind == ".rst")
        seen.add(title)
    return renamed


def rename(lines: list[str], at: int, title: str, new: str, *, underlined: bool) -> None:
    """Write a new title; in reStructuredText its rules must stay as long as the title."""
    head, _, tail = lines[at].rpartition(title)
    lines[at] = head + new + tail
    if underlined:
        over = at > 0 and lines[at - 1].strip() == lines[at + 1].strip()
        for rule in (at - 1, at + 1) if over else (at + 1,):
            mark = lines[rule].strip()
            lines[rule] = mark + mark[0] * max(0, len(new) - len(mark))


def dead_links(path: str, lines: list[str], kind: str) -> list[tuple[int, str]]:
    """Relative links whose target is not there, as (line number, target)."""
    outside = prose(lines) if kind == ".md" else [True] * len(lines)
    dead = []
    for number, line in enumerate(lines, 1):
        if not outside[number - 1]:
            continue
        if kind == ".md":
            line = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", line)
            targets = [*MD_LINK.findall(line), *MD_DEFINITION.findall(line)[:1]]
        else:
            targets = [one or other for one, other in RST_LINK.findall(line)]
        for target in targets:
            target = target.strip("<>").strip()
            plain = unquote(re.split(r"[#?]", target, maxsplit=1)[0])
            elsewhere = SCHEME.match(target) or "@" in target or (kind == ".rst" and target.endswith("_"))
            if plain and not elsewhere and not there(path, plain):
                dead.append((number, target))
    return dead


def there(path: str, target: str) -> bool:
    """Whether a relative target exists inside the repository."""
    if "\0" in target:
        return False
    place = os.path.normpath(PurePosixPath(path).parent / target)
    return not place.startswith("..") and Path(place).exists()


def tidy(path: str, content: bytes) -> Tidied:
    """Check one file; content that is no UTF-8 text, or very large, is left alone."""
    if not content or len(content) > LARGEST:
        return Tidied(content, (), ())
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return Tidied(content, (), ())
    end = "\r\n" if "\r\n" in text else "\n"
    fixes = []
    dead: list[tuple[int, str]] = []
    kind = PurePosixPath(path).suffix
    if kind in (".md", ".rst"):
        lines = text.split("\n")
        bare = [line.rstrip("\r") for line in lines]
        ends = [line[len(kept) :] for line, kept in zip(lines, bare, strict=True)]
        dead = dead_links(path, bare, kind)
        if renamed := number_headings(bare, kind):
            fixes.append(f"{len(renamed)} repeated heading{'s' * (len(renamed) > 1)} numbered")
            text = "\n".join(kept + ended for kept, ended in zip(bare, ends, strict=True))
    if not text.endswith("\n"):
        text += end
        fixes.append("final newline added")
    return Tidied(text.encode("utf-8"), tuple(fixes), tuple(dead))


def with_report(path: str, dead: tuple[tuple[int, str], ...]) -> tuple[bytes | None, bytes | None]:
    """The report as it stands in HEAD, and as it must be after this file."""
    before = committed(REPORT)
    if not dead:
        return before, before
    lines = "".join(f"- `{path}` line {number}: `{target}`\n" for number, target in dead)
    return before, (before if before is not None else REPORT_HEAD.encode()) + lines.encode()


# --- a turn -----------------------------------------------------------------------------------------


def write(path: str, content: bytes, scratch: Path) -> None:
    """Replace a file's content in one step, so that a crash leaves the old or the new, never a part."""
    place, draft = Path(path), scratch / "tidy-draft"
    draft.write_bytes(content)
    if place.exists():
        shutil.copymode(place, draft)
    draft.replace(place)


def say(status: str, **lines: str) -> None:
    """The block that ends the turn."""
    body = "".join(f"{key}: {value}\n" for key, value in {"status": status, **lines}.items())
    print(f"\n```tenuto\n{body}```", flush=True)


def present(path: str) -> bytes | None:
    place = Path(path)
    return place.read_bytes() if place.is_file() else None


def die_once(number: int, scratch: Path) -> None:
    """The crash of the demonstration: no clean-up runs, no block is printed."""
    mark = scratch / "tidy-died"
    if os.environ.get("TIDY_DIE_AT") == str(number) and not mark.exists():
        mark.touch()
        print("dying now, with the edit made and nothing committed", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


def blocked_by(path: str, expected: dict[str, tuple[bytes | None, bytes | None]]) -> list[str]:
    """Changed files that are not exactly our own half-done work; says what it found."""
    changed = dirty()
    strange = sorted(changed - set(expected))
    for name in sorted(changed & set(expected)):
        if present(name) in expected[name]:
            print(f"{name} was changed by an earlier turn and not committed; it is as it should be, finishing {path}")
        else:
            strange.append(name)
    return strange


def turn() -> None:
    """Check the first unchecked file and commit it, then say how things stand."""
    os.chdir(os.fsdecode(git("rev-parse", "--show-toplevel")).rstrip("\n"))
    scratch = Path(os.fsdecode(git("rev-parse", "--absolute-git-dir")).rstrip("\n"))
    files = tracked_texts()
    done = checked()
    left = [path for path in files if path not in done]
    print(f"{len(files) - len(left)} of {len(files)} files checked", flush=True)
    if not left:
        head = git("rev-parse", "HEAD").decode().strip()
        say("complete", summary=f"all {len(files)} files are checked", evidence=head)
        return
    path = left[0]
    original = committed(path)
    if original is None:
        say("blocked", summary=f"{path} is not committed yet", needs=f"Please commit {path} or unstage it.")
        return
    result = tidy(path, original)
    reports = with_report(path, result.dead)
    expected = {path: (original, result.content), REPORT: reports}
    if strange := blocked_by(path, expected):
        listed = ", ".join(strange[:5]) + (f" and {len(strange) - 5} more" if len(strange) > 5 else "")
        say("blocked", summary="there are changes that are not mine", needs=f"Please commit or undo: {listed}")
        return
    time.sleep(float(os.environ.get("TIDY_PACE") or 0))
    touched = []
    for name, (before, after) in expected.items():
        if after is not None and after != before:
            touched.append(name)
            if present(name) != after:
                write(name, after, scratch)
    die_once(len(files) - len(left) + 1, scratch)
    dead = f"{len(result.dead)} dead link{'s' * (len(result.dead) != 1)} reported" if result.dead else ""
    what = ", ".join([*result.fixes, *([dead] if dead else [])]) or "nothing to mend"
    head = commit(touched, path, what)
    print(f"{path}: {what}")
    if len(left) == 1:
        say("complete", summary=f"all {len(files)} files are checked", progress=f"commit {head}", evidence=head)
    else:
        say("working", summary=f"{path}: {what}", progress=f"commit {head}", next=f"check {left[1]}")


if __name__ == "__main__":
    if not sys.stdin.buffer.read():
        sys.exit("a prompt is expected on stdin")
    turn()
