"""Nothing in the tree tells of one machine, one registry or unfinished thoughts.

The words looked for are put together here from halves, so that this file does not
find itself.
"""

import re

import pytest

HOSTS = [
    "pypi" + ".org",
    "python" + "hosted.org",
    "registry.npm" + "js.org",
    "registry.yarn" + "pkg.com",
    "deb." + "debian.org",
    "archive." + "ubuntu.com",
    "static.crates" + ".io",
    "proxy.golang" + ".org",
]
# Where trees are built, and the home of one person. Paths that every system has are no secret.
PLACES = [
    "/work" + "/main",
    "/work" + "/shared",
    "/work" + "/.",
    "/tmp" + "/brief",
    "/opt" + "/wheels",
    "/opt" + "/pypi",
    "/root" + "/",
]

FORBIDDEN = {
    "a registry's host": re.compile("|".join(map(re.escape, HOSTS)), re.IGNORECASE),
    "a path of one machine": re.compile(r"(?<![\w.])(?:" + "|".join(map(re.escape, PLACES)) + ")"),
    "an unfinished thought": re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME)\b"),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_names(what: str, tracked: dict[str, bytes]) -> None:
    found = []
    for path, content in tracked.items():
        if b"\0" in content:
            continue
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            if FORBIDDEN[what].search(line):
                found.append(f"{path}:{number}: {line.strip()[:120]}")
    assert not found, f"{what}:\n" + "\n".join(found[:20])


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("a registry's host", "resolved: https://registry.npm" + "js.org/left-pad"),
        ("a path of one machine", 'cwd = "/work' + '/main/src"'),
        ("an unfinished thought", "# TO" + "DO: later"),
    ],
)
def test_the_search_finds(what: str, line: str) -> None:
    assert FORBIDDEN[what].search(line)


def test_text_files_are_utf8_and_end_with_a_line(tracked: dict[str, bytes]) -> None:
    rough = [
        path
        for path, content in tracked.items()
        if path.endswith((".py", ".toml", ".md", ".js")) and content and not (utf8(content) and content.endswith(b"\n"))
    ]
    assert not rough, f"not UTF-8, or without a last line end: {rough}"


def utf8(content: bytes) -> bool:
    """Tell whether the bytes are UTF-8 without a byte order mark."""
    try:
        return not content.decode("utf-8").startswith("\ufeff")
    except UnicodeDecodeError:
        return False
