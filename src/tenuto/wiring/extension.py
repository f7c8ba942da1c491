"""Lays the browser extension out as a folder that a browser loads: one source, and each family's own manifest.

Which sites it may look at is what the profiles say, ours and the user's, and nothing more. A folder that was laid out
before is replaced; one that holds anything else is left alone.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import tenuto
from tenuto import __version__
from tenuto.model.faults import Mistake

BROWSERS: Final = ("chromium", "firefox")
PARTS: Final = ("background", "page", "panel", "shared")
MARK: Final = ".tenuto-extension"


def source() -> Path:
    """Where the extension's own files lie: beside the package in a wheel, at the top of the tree in a checkout."""
    package = Path(tenuto.__file__).parent
    for place in (package / "extension", package.parent.parent / "extension"):
        if (place / "loader.js").is_file():
            return place
    raise Mistake("the extension's files are not installed here", field="extension")


def lay_out(folder: Path, browser: str, hosts: Iterable[str], *, origin: Path | None = None) -> Path:
    """Make the folder for one family of browsers; `hosts` are the sites it may look at. Raises Mistake or OSError."""
    if browser not in BROWSERS:
        raise Mistake(f"a browser is one of {', '.join(BROWSERS)}", field="browser")
    place = origin or source()
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).is_file():
            raise Mistake(f"{folder} holds something else; name another folder", field="folder")
        shutil.rmtree(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / MARK).write_text(f"{browser}\n", "utf-8")
    for part in PARTS:
        shutil.copytree(place / part, folder / part, ignore=shutil.ignore_patterns("*.ts", "*.md", "test*"))
    shutil.copy2(place / "loader.js", folder / "loader.js")
    shutil.copytree(place / "icons", folder / "icons")
    manifest = json.loads((place / f"manifest.{browser}.json").read_text("utf-8"))
    written = json.dumps(_with_sites(manifest, sorted(set(hosts))), indent=2, ensure_ascii=False)
    (folder / "manifest.json").write_text(f"{written}\n", "utf-8")
    return folder


def _with_sites(manifest: Mapping[str, Any], hosts: list[str]) -> dict[str, Any]:
    """The manifest with the sites of the profiles in it; a pattern names no port."""
    patterns = [f"https://{host}/*" for host in hosts]
    plain = [f"http://{host}/*" for host in hosts if host == "localhost" or host.endswith(".localhost")]
    sites = [*patterns, *plain]
    content = {**manifest["content_scripts"][0], "matches": sites}
    access = {**manifest["web_accessible_resources"][0], "matches": sites}
    return {
        **manifest,
        "version": _numbers(__version__),
        "host_permissions": [*manifest["host_permissions"], *sites],
        "content_scripts": [content],
        "web_accessible_resources": [access],
    }


def _numbers(version: str) -> str:
    """A browser takes up to four numbers, and nothing else, for a version."""
    kept = []
    for part in version.split(".")[:4]:
        digits = "".join(each for each in part if each.isdigit())
        kept.append(str(int(digits or "0")))
    return ".".join(kept)
