"""No link in our texts leads to nothing.

Every relative link of every Markdown file has to name a tracked file or directory, and where it names a heading, that
heading has to be there. Links to the network are nobody's business here. Golden files and what tests feed on are no
texts of ours.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,}).*?^\1\2[`~]*[ \t]*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
NOT_OURS = ("tests/golden/", "tests/data/", "tests/fixtures/")


def links(text: str) -> Iterator[str]:
    """The targets of a text, without those that stand in code."""
    bare = SPAN.sub("", FENCE.sub("", text))
    for found in LINK.finditer(bare):
        yield found[1] or found[2]


def anchors(text: str) -> set[str]:
    """The names that the headings of a text can be linked by."""
    named: dict[str, int] = {}
    result = set()
    for found in HEADING.finditer(FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found[1])
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        count = named.get(name, 0)
        named[name] = count + 1
        result.add(f"{name}-{count}" if count else name)
    return result


def reached(base: str, target: str) -> str | None:
    """The path from the top that a target names; None when it leaves the tree."""
    parts: list[str] = [] if target.startswith("/") else list(PurePosixPath(base).parent.parts)
    for part in PurePosixPath(target.lstrip("/")).parts:
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def dead(texts: dict[str, str], places: set[str]) -> list[str]:
    """Every link that leads to nothing, as "file: target"."""
    found = []
    for path, text in texts.items():
        for target in links(text):
            if OUTSIDE.match(target):
                continue
            name, _, heading = target.partition("#")
            place = reached(path, name) if name else path
            lost = place is None or (place != "" and place not in places)
            silent = bool(heading) and place in texts and heading not in anchors(texts[place])
            if lost or silent:
                found.append(f"{path}: {target}")
    return found


def test_no_link_is_dead(tracked: dict[str, bytes]) -> None:
    texts = {
        path: content.decode("utf-8")
        for path, content in tracked.items()
        if path.endswith(".md") and not path.startswith(NOT_OURS)
    }
    places = set(tracked) | {"/".join(path.split("/")[:n]) for path in tracked for n in range(1, path.count("/") + 1)}
    assert not (found := dead(texts, places)), "\n".join(found)


@pytest.mark.parametrize(
    ("target", "alive"),
    [
        ("b.md", True),
        ("../README.md", True),
        ("../docs", True),
        ("b.md#two-words", True),
        ("b.md#two-words-1", True),
        ("#here-it-is", True),
        ("https://example.org/nothing", True),
        ("c.md", False),
        ("b.md#three-words", False),
        ("#nowhere", False),
        ("../../outside.md", False),
    ],
)
def test_a_link_is_judged(target: str, *, alive: bool) -> None:
    texts = {
        "docs/a.md": f"# Here *it* is\n\nSee [that]({target}).\n",
        "docs/b.md": "# B\n\n## Two words\n\n## Two words\n",
        "README.md": "# Top\n",
    }
    assert (dead(texts, {*texts, "docs"}) == []) is alive


def test_what_stands_in_code_is_no_link() -> None:
    assert list(links("`[a](b.md)`\n\n```\n[c](d.md)\n```\n\n[e](f.md)\n\n[g]: h.md\n")) == ["f.md", "h.md"]
