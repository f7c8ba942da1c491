"""Profiles are checked whole: what does not fit is refused with its place, and a user's own comes first."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tenuto import sites
from tenuto.model.faults import Mistake

SMALL = """
schema = "tenuto-site/1"
[site]
id = "small"
name = "Small"
version = "1"
verified_on = 2026-01-01
hosts = ["small.example"]
new_chat = "https://small.example/"
[evidence.seen]
what = "a page"
where = "by hand"
date = 2026-01-01
[[url]]
regex = '^https://small\\.example/c/([0-9]+)'
kind = "conversation"
identity = 1
[[url]]
regex = '^https://small\\.example/$'
kind = "new"
{roles}
[[state]]
id = "generating"
when = {{ has = "stop" }}
[[state]]
id = "ready"
when = {{ has = "composer" }}
[send]
type = ["paste"]
[completion]
when = {{ has = "finished" }}
stable_ms = 1000
short_stable_ms = 2000
watched_stable_ms = 3000
[identity]
keys = ["id"]
"""
ROLES = "".join(
    f'[[role.{role}]]\ncss = ".{role}"\nrank = 4\nsrc = ["seen"]\n'
    for role in ("composer", "send", "stop", "user_turn", "assistant_turn", "finished")
)
WHOLE = SMALL.format(roles=ROLES)


def loaded(place: Path, text: str, name: str = "mine.toml") -> dict[str, Any]:
    (place / name).write_text(text)
    return dict(sites.load(place))


def test_chatgpt_is_whole_and_every_fact_is_dated() -> None:
    profile = sites.load(None)["chatgpt"]
    cited = {source for candidates in profile.role.values() for each in candidates for source in each.src}
    cited |= {source for error in profile.error for source in error.src} | {s for url in profile.url for s in url.src}
    assert cited <= set(profile.evidence)
    assert all(evidence.where and evidence.date for evidence in profile.evidence.values())
    assert max(evidence.date for evidence in profile.evidence.values()) <= profile.site.verified_on
    assert {rule.id for rule in profile.state} >= {
        "challenge",
        "login",
        "limit",
        "full",
        "dead",
        "approval",
        "settling",
    }
    variants = {candidate.variant for candidate in profile.role["user_turn"]}
    assert {"section", "article", "fallback", "roles"} <= variants


def test_what_a_page_is_given_is_json_and_known_by_its_digest() -> None:
    compiled = sites.compiled(sites.load(None)["chatgpt"])
    assert json.loads(json.dumps(compiled)) == compiled
    assert re.fullmatch("[0-9a-f]{64}", compiled["digest"])
    assert compiled == sites.compiled(sites.load(None)["chatgpt"])
    assert "evidence" not in compiled
    assert "antwort stoppen" in compiled["labels"]["stop"]["words"], "words of all languages, as they are compared"
    assert len(json.dumps(compiled)) < 64 * 1024


def test_a_site_is_found_by_its_address() -> None:
    known = sites.load(None)
    for url in ("https://chatgpt.com/c/1", "https://chat.openai.com", "https://CHATGPT.com/?x"):
        assert sites.for_url(known, url) is known["chatgpt"]
    for url in ("https://chatgpt.com.evil.example/", "https://notchatgpt.com/", "chatgpt.com", ""):
        assert sites.for_url(known, url) is None


def test_a_profile_of_the_user_is_known_beside_ours(tmp_path: Path) -> None:
    assert set(loaded(tmp_path, WHOLE)) == {"chatgpt", "small"}


def test_a_profile_of_the_same_name_takes_the_place_of_ours(tmp_path: Path) -> None:
    """BR-172: a changed button is mended by a file, without another version of the program."""
    known = loaded(tmp_path, WHOLE.replace('id = "small"', 'id = "chatgpt"'))
    assert known["chatgpt"].site.name == "Small"


def test_an_extension_changes_the_tables_it_names_and_no_other(tmp_path: Path) -> None:
    text = """schema = "tenuto-site/1"
extends = "chatgpt"
[[role.send]]
css = "#new-send"
rank = 1
src = ["mine"]
[evidence.mine]
what = "looked at it"
where = "here"
date = 2026-11-01
"""
    before = sites.load(None)["chatgpt"]
    after = loaded(tmp_path, text)["chatgpt"]
    assert [candidate.css for candidate in after.role["send"]] == ["#new-send"]
    assert after.role["stop"] == before.role["stop"]
    assert after.state == before.state
    assert sites.compiled(after)["digest"] != sites.compiled(before)["digest"]


@pytest.mark.parametrize("change,said", [
    (("tenuto-site/1", "tenuto-site/9"), "tenuto-site/9"),
    (('css = ".send"', 'css = ".send"\nclick = true'), "role.send.0.click"),
    (("[[role.stop]]", "[[role.halt]]"), "role.halt"),
    (('src = ["seen"]', 'src = ["nowhere"]'), "evidence.nowhere"),
    (("identity = 1", ""), "needs `identity`"),
    (("identity = 1", "identity = 2"), "1 groups"),
    (('has = "stop"', 'has = "stop", lacks = "send"'), "exactly one thing"),
    (('has = "stop"', 'has = "nothing"'), "state.0.when.has"),
    (("([0-9]+)", "(?P<id>[0-9]+)"), "number them"),
    (("([0-9]+)", "([0-9]+"), "no pattern"),
    (('type = ["paste"]', 'type = ["eval"]'), "send.type.0"),
    (('id = "ready"', 'id = "draft"'), "need a rule each"),
    (('new_chat = "https', 'new_chat = "http'), "site.new_chat"),
    (("rank = 4", "rank = 5"), "name the label"),
    (("[site]", "[site"), "no TOML"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_with_its_place(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    with pytest.raises(Mistake) as refused:
        loaded(tmp_path, WHOLE.replace(*change))
    assert "mine.toml" in str(refused.value)
    assert said in str(refused.value)


def test_a_role_that_is_needed_is_missed(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=re.escape("role.finished is missing")):
        loaded(tmp_path, SMALL.format(roles=ROLES.split("[[role.finished]]")[0]))


def test_errors_are_never_read_in_what_somebody_wrote(tmp_path: Path) -> None:
    error = '[[error]]\nid = "x"\nclass = "rate_limited"\nin = ["composer"]\nregex = ["too many"]\nsrc = ["seen"]\n'
    with pytest.raises(Mistake, match="never read for errors"):
        loaded(tmp_path, WHOLE + error)


def test_an_extension_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="no such profile"):
        loaded(tmp_path, 'extends = "nobody"\n')


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="at most"):
        loaded(tmp_path, WHOLE + "#" * (600 * 1024))


def test_drift_is_a_late_candidate_or_none_of_a_critical_role() -> None:
    compiled = sites.compiled(sites.load(None)["chatgpt"])
    assert sites.drifted(compiled, {"composer": 0, "send": 1, "user_turn": 3, "banner": 9}, ["dialog"]) == ()
    drifts = sites.drifted(compiled, {"composer": 2, "send": 3, "stop": 99}, ["finished", "finished"])
    assert [(drift.role, drift.candidate) for drift in drifts] == [("finished", None), ("composer", 2), ("send", 3)]
    said = sites.sentence(compiled, drifts)
    assert said is not None
    assert "candidate 3 alone (rank 4)" in said
    assert sites.sentence(compiled, ()) is None
