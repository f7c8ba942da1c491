"""The extension as it is laid out: its linter and the strict checker of types find nothing, and it speaks the wire."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.model.faults import Mistake
from tenuto.wiring.extension import BROWSERS, lay_out

TOP = Path(__file__).parents[2]
MODULES = TOP / "tests" / "node" / "node_modules"
GOLDEN = TOP / "tests" / "wire" / "golden"


def node() -> str:
    """The node of the tree's own environment, else the system's."""
    found = shutil.which("node", path=str(Path(sys.executable).parent)) or shutil.which("node")
    assert found is not None, "no node on this machine; requirements.lock names the package"
    return found


KNOWN = {("UNSAFE_VAR_ASSIGNMENT", "loader.js")}
"""The page's script is loaded from the extension's own address, which is another one in every profile of Firefox."""


def test_the_linter_finds_nothing_but_what_is_known(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "firefox", "firefox", ["chatgpt.com", "chat.openai.com"])
    done = subprocess.run(
        [node(), str(MODULES / "web-ext" / "bin" / "web-ext.js"), "lint", "--self-hosted", "--output", "json",
         "--source-dir", str(folder), "--no-config-discovery"],
        capture_output=True, text=True, timeout=110, check=False, cwd=tmp_path,
    )  # fmt: skip
    told = json.loads(done.stdout)
    found = told["errors"] + told["warnings"] + told["notices"]
    assert {(each["code"], each["file"]) for each in found} == KNOWN, json.dumps(found, indent=1)
    assert told["summary"] == {"errors": 0, "notices": 0, "warnings": 1}


def test_the_types_of_the_background_and_the_panel_hold() -> None:
    done = subprocess.run(
        [node(), str(MODULES / "typescript" / "bin" / "tsc"), "-p", "extension/tsconfig.json", "--pretty", "false"],
        capture_output=True, text=True, timeout=110, check=False, cwd=TOP,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("browser", BROWSERS)
def test_a_folder_asks_for_the_sites_and_loopback_and_nothing_more(tmp_path: Path, browser: str) -> None:
    folder = lay_out(tmp_path / browser, browser, ["b.example", "a.example"])
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    sites = ["https://a.example/*", "https://b.example/*"]
    assert manifest["host_permissions"] == ["http://127.0.0.1/*", *sites]
    assert manifest["content_scripts"][0]["matches"] == sites
    assert manifest["permissions"] == ["alarms", "scripting", "storage", "unlimitedStorage"]
    assert manifest["web_accessible_resources"][0]["resources"] == ["page/*.js", "shared/*.js"]
    assert "optional_permissions" not in manifest
    for name in ("background/main.js", "loader.js", "page/main.js", "panel/panel.html", "icons/48.png"):
        assert (folder / name).is_file(), name
    assert not list(folder.rglob("*.ts"))
    assert lay_out(folder, browser, ["a.example"]) == folder


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear", "utf-8")
    with pytest.raises(Mistake, match="something else"):
        lay_out(tmp_path, "chromium", ["a.example"])
    with pytest.raises(Mistake, match="browser is one of"):
        lay_out(tmp_path / "x", "lynx", ["a.example"])
    assert (tmp_path / "letter.txt").read_text("utf-8") == "dear"


SPOKEN = """
import { readFileSync, readdirSync } from 'node:fs';
import { dump, parse, WireError } from %(frames)s;
const golden = %(golden)s;
const heard = new Set(['welcome', 'bye', 'command', 'revoke', 'inquire', 'ping', 'pong']);
const told = { parsed: [], dumped: [], refused: 0 };
for (const file of readdirSync(golden).filter((name) => name.endsWith('.json'))) {
  const text = readFileSync(`${golden}/${file}`, 'utf-8');
  const value = JSON.parse(text);
  const { frame, ...fields } = value;
  if (JSON.stringify(JSON.parse(dump(frame, fields))) === JSON.stringify(value)) told.dumped.push(file);
  if (heard.has(frame)) {
    const read = parse(text);
    parse(JSON.stringify({ ...value, later: { deep: [1] } }));
    if (JSON.stringify(read) === JSON.stringify(value)) told.parsed.push(file);
    for (const name of Object.keys(fields)) {
      for (const wrong of [[[0]], true, { no: ['such'] }]) {
        if (name === 'payload' && !Array.isArray(wrong) && typeof wrong === 'object') continue;
        try { parse(JSON.stringify({ ...value, [name]: wrong })); console.error(file, name, wrong); process.exit(1); }
        catch (error) { if (!(error instanceof WireError)) throw error; told.refused += 1; }
      }
    }
  } else {
    try { parse(text); process.exit(2); } catch (error) { if (!(error instanceof WireError)) throw error; }
  }
}
for (const text of ['', '[]', '{}',
  '{"frame":"launch"}', '{"frame":["ping"]}', '{"frame":"ping"}', '{"frame":"toString"}', 7]) {
  try { parse(text); process.exit(3); } catch (error) { if (!(error instanceof WireError)) throw error; }
}
console.log(JSON.stringify(told));
"""


def test_golden_frames_are_read_and_written_as_the_supervisor_does(tmp_path: Path) -> None:
    frames = json.dumps((TOP / "extension" / "background" / "frames.js").as_uri())
    script = tmp_path / "spoken.mjs"
    script.write_text(SPOKEN % {"frames": frames, "golden": json.dumps(str(GOLDEN))}, "utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}', "utf-8")
    done = subprocess.run([node(), str(script)], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    names = {path.name for path in GOLDEN.glob("*.json")}
    assert set(told["dumped"]) == names
    assert {"welcome.json", "bye.json", "command.json", "revoke.json", "inquire.json", "ping.json"} <= set(
        told["parsed"]
    )
    assert told["refused"] > 60
