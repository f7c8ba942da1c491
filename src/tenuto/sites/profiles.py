"""Reads site profiles, ours and the user's, and makes of each what a page is given.

A user's file of the same id takes the place of ours; with `extends` it changes single tables of one. A file that does
not fit is refused as a whole with its name and the place in it: no half of a profile is ever used.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenuto.model.faults import Mistake

if TYPE_CHECKING:
    from tenuto.sites.shape import Labels, Profile

Compiled = dict[str, Any]
"""A profile as a page is given it: JSON values only."""

SIZE = 512 * 1024
FILES = 64
MERGED = ("role", "labels", "evidence", "site", "send", "completion", "identity")
"""Tables that an extending profile changes name by name; all others it replaces whole."""


def load(directory: Path | None) -> dict[str, Profile]:
    """Every profile by its id: ours, and in their place those in `directory`; raises Mistake naming the file."""
    told = {name: _toml(name, text) for name, text in _ours()}
    raw = {str(table["site"]["id"]): (name, table) for name, table in told.items()}
    for path in _users(directory):
        table = _toml(str(path), _text(path))
        base = table.pop("extends", None)
        if base is not None:
            if base not in raw:
                raise Mistake(f"{path}: extends {base!r}, and there is no such profile")
            table = _merged(raw[str(base)][1], table)
        site = table.get("site")
        identity = site.get("id") if isinstance(site, Mapping) else None
        if not isinstance(identity, str):
            raise Mistake(f"{path}: site.id is missing")
        raw[identity] = (str(path), table)
    return {identity: _profile(name, table) for identity, (name, table) in raw.items()}


def read(path: Path) -> Profile:
    """The profile in one file, which extends nothing; raises Mistake."""
    return _profile(str(path), _toml(str(path), _text(path)))


def for_url(profiles: Mapping[str, Profile], url: str) -> Profile | None:
    """The profile whose site has this address, None where there is none."""
    found = re.match(r"https?://([^/:?#]+)", url)
    if found is None:
        return None
    return next((profile for profile in profiles.values() if found[1].lower() in profile.site.hosts), None)


def compiled(profile: Profile) -> Compiled:
    """What a page needs of it, with the digest it is known by. Evidence and notes stay behind."""
    words = {name: _words(labels) for name, labels in profile.labels.items()}
    told: Compiled = {
        "schema": profile.schema_,
        "id": profile.site.id,
        "version": profile.site.version,
        "hosts": profile.site.hosts,
        "new_chat": profile.site.new_chat,
        "urls": [url.model_dump(exclude={"src"}) for url in profile.url],
        "labels": words,
        "roles": {
            role: [
                candidate.model_dump(exclude={"src", "since", "until", "variant"}, exclude_defaults=True)
                for candidate in candidates
            ]
            for role, candidates in profile.role.items()
        },
        "states": [_plain(rule.model_dump(exclude={"note"}, by_alias=True)) for rule in profile.state],
        "errors": [_plain(error.model_dump(exclude={"note", "src"}, by_alias=True)) for error in profile.error],
        "send": profile.send.model_dump(),
        "steer": profile.steer.model_dump() if profile.steer else None,
        "completion": _plain(profile.completion.model_dump(by_alias=True)),
        "identity": profile.identity.model_dump(),
    }
    canonical = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {**told, "digest": hashlib.sha256(canonical.encode()).hexdigest()}


def _plain(value: Any) -> Any:
    """Without the entries that say nothing."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if each is not None}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _words(labels: Labels) -> dict[str, list[str]]:
    """All languages in one, as an accessible name is compared."""
    words = {word for each in labels.words.values() for word in each}
    if labels.key is not None:
        words |= {word for each in _locales().values() for word in each.get(labels.key, [])}
    return {"words": sorted({" ".join(word.split()).lower() for word in words}), "regex": labels.regex}


def _locales() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = json.loads((_place() / "chatgpt-words.json").read_text("utf-8"))
    return found


def _place() -> Any:
    return resources.files("tenuto.sites")


def _ours() -> Iterable[tuple[str, str]]:
    names = sorted(entry.name for entry in _place().iterdir() if entry.name.endswith(".toml"))
    return [(name, (_place() / name).read_text("utf-8")) for name in names]


def _users(directory: Path | None) -> list[Path]:
    if directory is None or not directory.is_dir():
        return []
    found = sorted(path for path in directory.iterdir() if path.suffix == ".toml")
    if len(found) > FILES:
        raise Mistake(f"{directory}: {len(found)} profiles are more than the {FILES} that are read")
    return found


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > SIZE:
            raise Mistake(f"{path}: a profile has at most {SIZE // 1024} KiB")
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise Mistake(f"{path}: cannot be read: {fault}") from None


def _toml(name: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise Mistake(f"{name}: no TOML: {fault}") from None


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    table = dict(base)
    for key, value in over.items():
        below = table.get(key)
        if key in MERGED and isinstance(value, Mapping) and isinstance(below, Mapping):
            table[key] = {**below, **value}
        else:
            table[key] = value
    return table


def _profile(name: str, table: Mapping[str, Any]) -> Profile:
    from pydantic import ValidationError

    from tenuto.sites.shape import Profile

    if table.get("schema") != "tenuto-site/1":
        raise Mistake(f"{name}: schema is {table.get('schema')!r}; this version reads tenuto-site/1")
    try:
        return Profile.model_validate(table)
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        more = len(fault.errors()) - 1
        rest = f" (and {more} more)" if more else ""
        raise Mistake(f"{name}: {place}: {first['msg'].removeprefix('Value error, ')}{rest}") from None
