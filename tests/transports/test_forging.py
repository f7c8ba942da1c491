"""What merging is given on this machine: hosts by their place, GitHub by the configuration, and the switch outside."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.world import SetClock

from tenuto.config import Settings, load
from tenuto.model.faults import Mistake
from tenuto.model.forge import ForgePlace
from tenuto.sources.github.forge import GitHubForge
from tenuto.transports.forge.bare import BareForge
from tenuto.wiring.forging import EveryForge, hosts, switch


def settings(folder: Path, config: str = "", **more: str) -> Settings:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(config)
    environ: Mapping[str, str] = {"TENUTO_HOME": str(home), **more}
    return load(environ)


def test_a_host_is_found_by_its_place_and_no_other_is(tmp_path: Path) -> None:
    forges = EveryForge(settings(tmp_path), SetClock())
    assert isinstance(forges.open(ForgePlace("github", "some/where")), GitHubForge)
    bare = forges.open(ForgePlace("git", str(tmp_path / "x.git"), "main"))
    assert isinstance(bare, BareForge)
    assert (bare.into, bare.store.parent) == ("main", tmp_path / "home" / "state" / "forges")
    for place in (
        ForgePlace("git", "./relative"),
        ForgePlace("git", "https://me:secret@host.example/x"),
        ForgePlace("git", str(tmp_path), "-x"),
        ForgePlace("github", "one"),
        ForgePlace("gitlab", "a/b"),
    ):
        with pytest.raises(Mistake):
            forges.open(place)


def test_the_switch_is_a_file_or_a_variable(tmp_path: Path) -> None:
    told = settings(tmp_path)
    assert switch(told) is None
    told.state.mkdir(parents=True)
    told.self_advancing_stop.touch()
    assert "the file self-advancing.off" in (hosts(told, SetClock(), {}).switch() or "")
    told.self_advancing_stop.unlink()
    assert hosts(told, SetClock(), {}).switch() is None
    for word, stops in (("1", True), ("yes", True), ("0", False), ("no", False), ("False", False), ("", False)):
        off = switch(settings(tmp_path, TENUTO_SELF_ADVANCING_DISABLED=word))
        assert (off is not None) is stops, word


def test_github_is_configured_without_its_token(tmp_path: Path) -> None:
    token = "ghp_" + "x" * 20
    told = settings(
        tmp_path,
        '[github]\nhost = "git.example.org"\napi = "https://git.example.org/api/v3"\ntoken_file = "/etc/token"\n',
        TENUTO_GITHUB_TOKEN=token,
        GITHUB_TOKEN="other",
    )
    assert (told.github.host, told.github.token, told.github.token_file) == (
        "git.example.org", token, Path("/etc/token"),
    )  # fmt: skip
    assert token not in repr(told)
    assert settings(tmp_path, GITHUB_TOKEN="other").github.token == "other"


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ("github = 1", "github"),
        ('[github]\ntoken = "x"', "github"),
        ('[github]\nhost = "Not A Host"', "github.host"),
        ('[github]\napi = "http://git.example.org"', "github.api"),
        ('[github]\napi = "https://me:secret@git.example.org"', "github.api"),
        ('[github]\ntoken_file = "relative"', "github.token_file"),
    ],
)
def test_what_cannot_be_configured_is_refused_by_its_name(tmp_path: Path, config: str, field: str) -> None:
    with pytest.raises(Mistake) as mistake:
        settings(tmp_path, config)
    assert mistake.value.field == field
    assert "secret" not in str(mistake.value)


def test_a_token_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Mistake):
        settings(tmp_path, TENUTO_GITHUB_TOKEN="two words")
