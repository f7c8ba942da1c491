"""Make the reference pages whose facts stand in the code: features, policy, events, storage, config, wire.

Names, types, defaults and rules are taken from the code, words from the TOML file beside each page. A name
without words, or words without a name, is an error that says which; so is a feature that is said to work and
names no test. Run without arguments it writes the pages; `--check` writes nothing and ends with 1 when a page
is not what it would write.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy import CheckConstraint

from tenuto.model.evidence import Asking, Ending, Hindered, Rank
from tenuto.model.fact import FactKind
from tenuto.model.ids import AttemptId, CommandId, RunId, TaskId
from tenuto.model.policy import LONGEST, POLICY, SHORTEST, Policy
from tenuto.store import tables
from tenuto.transports import wire as frames

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "tenuto"
PAGES = ROOT / "docs" / "reference"
STATES = ("works", "partly", "not yet")

Words = dict[str, Any]


class Disagreement(Exception):
    """The words and the code do not speak of the same things."""


def compared(what: str, words: Iterable[str], code: Iterable[str]) -> None:
    """Raise Disagreement unless both name the same."""
    said, there = set(words), set(code)
    if missing := sorted(there - said):
        raise Disagreement(f"{what}: these have no words: {', '.join(missing)}")
    if extra := sorted(said - there):
        raise Disagreement(f"{what}: these are not in the code: {', '.join(extra)}")


def modules() -> Iterator[tuple[str, str]]:
    """Every module of the package: its path from there, and its text."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), path.read_text("utf-8")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    head = list(head)
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def code(names: Iterable[str], by: str = " ") -> str:
    return by.join(f"`{name}`" for name in names)


def opened(title: str, words: str) -> list[str]:
    return [f"# {title}", "", f"Made by `scripts/reference.py`; change [{words}]({words}) or the code instead.", ""]


# --- features


def features(words: Words) -> list[str]:
    rows = {row["id"]: row for row in words["row"]}
    expected = [f"{area}-{n:02}" for area, told in words["areas"].items() for n in range(1, told["count"] + 1)]
    if len(rows) != len(words["row"]):
        raise Disagreement("features: an id stands there twice")
    compared("features", rows, expected)
    for row in rows.values():
        judged(row)
    counts = {state: sum(row["state"] == state for row in rows.values()) for state in STATES}
    page = opened("What works", "features.toml")
    page += [
        "*Works* means: a user can reach it, a test fails when it breaks, and it survives a kill at any moment.",
        "*Partly* means that the middle column is all there is. Modules are below `src/tenuto/`.",
        "",
        "Now: " + ", ".join(f"{count} {state}" for state, count in counts.items()) + ".",
    ]
    for area, told in words["areas"].items():
        page += ["", f"## {area}: {told['about']}", ""]
        page += table(
            ("row", "what", "state", "what exists", "modules", "proved by"),
            (
                (
                    row["id"],
                    row["title"],
                    row["state"],
                    row.get("exists", ""),
                    code(row.get("modules", ())),
                    code(row.get("tests", ())),
                )
                for row in (rows[name] for name in expected if name.startswith(area))
            ),
        )
    return page


def judged(row: Mapping[str, Any]) -> None:
    """Raise Disagreement unless what a row says of itself can be true."""
    name = row["id"]
    if row["state"] not in STATES:
        raise Disagreement(f"{name}: '{row['state']}' is no state")
    if row["state"] == "works" and not row.get("tests"):
        raise Disagreement(f"{name} is said to work and no test proves it")
    if row["state"] != "not yet" and not (row.get("exists") and row.get("modules")):
        raise Disagreement(f"{name} does not say what exists and where")
    for module in row.get("modules", ()):
        if not (PACKAGE / module).is_file():
            raise Disagreement(f"{name} names {module}, which is not there")
    for test in row.get("tests", ()):
        path, _, function = test.partition("::")
        function, _, case = function.removesuffix("]").partition("[")
        place = ROOT / path
        text = place.read_text("utf-8") if place.is_file() else ""
        if function not in functions(text) or (case and f'"{case}"' not in text):
            raise Disagreement(f"{name} names the test {test}, which is not there")


def functions(text: str) -> set[str]:
    """Every function of a module, methods too."""
    return {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


# --- policy


def policy(words: Words) -> list[str]:
    names = [field.name for field in fields(Policy)]
    compared("policy", words, names)
    least = ", ".join(f"`{name}` {time.total_seconds():g}" for name, time in SHORTEST.items())
    page = opened("Policy numbers", "policy.toml")
    page += [
        "A run keeps the numbers it began with. `[policy]` in the [configuration](config.md) sets those of new runs,",
        "`tenuto policy set` those of one run; `tenuto policy show` says where each comes from. Durations are given in",
        f"seconds, {LONGEST.days // 365} years at most; some have a least length, below which they would stop the work",
        f"or make a storm of it: {least}.",
        "Counts go up to 2^53. A number that is *not yet* in force is one that no code reads: it bounds what is still",
        "to be built.",
        "",
    ]
    sources = [text for path, text in modules() if path.startswith(("core/", "engine/"))]
    page += table(
        ("number", "unit", "default", "what it bounds", "why", "in force"),
        (
            (
                f"`{name}`",
                unit(name, getattr(POLICY, name)),
                spoken(getattr(POLICY, name)),
                words[name]["bounds"],
                words[name]["reason"],
                "yes" if any(re.search(rf"\.{name}\b", text) for text in sources) else "not yet",
            )
            for name in names
        ),
    )
    return page


def unit(name: str, value: object) -> str:
    match value:
        case timedelta():
            return "duration"
        case tuple():
            return "list of durations"
        case _ if name.endswith("_bytes"):
            return "bytes"
        case _:
            return "count"


def spoken(value: object) -> str:
    match value:
        case None:
            return "no cap"
        case timedelta():
            seconds = int(value.total_seconds())
            for size, name in ((3600, "h"), (60, "min")):
                if seconds and seconds % size == 0:
                    return f"{seconds // size} {name}"
            return f"{seconds} s"
        case tuple():
            return ", ".join(spoken(each) for each in value)
        case int() if value >= 1024 and value % 1024 == 0:
            return f"{value // 1024} KiB"
        case _:
            return str(value)


# --- events


def events(words: Words) -> list[str]:
    told = {f"{area}.{name}".rstrip("."): about for area, names in words.items() for name, about in names.items()}
    compared("events", told, (kind.value for kind in FactKind))
    written = emissions()
    for kind, data in written.items():
        known = set(told[kind]["data"])
        if "*" not in known and (unknown := sorted(data - known)):
            raise Disagreement(f"events: {kind} is written with data that are not told: {', '.join(unknown)}")
    page = opened("Events", "events.toml")
    page += [
        "What can be written in the append-only `event` table, and be read with `tenuto events`. An event is numbered",
        "`(epoch, n)`; `n` alone is a total order. It names its run and task where it has one. Data are short strings,",
        "numbers and truth values: an identifier, a state, a sentence of ours, a line of a block. Bodies of texts are",
        "never among them.",
        "",
    ]
    page += table(
        ("kind", "meaning", "data", "written"),
        (
            (
                f"`{kind.value}`",
                told[kind.value]["means"],
                "changed names" if told[kind.value]["data"] == ["*"] else code(told[kind.value]["data"]),
                "yes" if kind.value in written else "not yet",
            )
            for kind in FactKind
        ),
    )
    return page


def emissions() -> dict[str, set[str]]:
    """Which kinds the package writes, and the names of their data as far as they stand in the text."""
    found: dict[str, set[str]] = {}
    for path, text in modules():
        if path.split("/")[0] in ("core", "engine", "store"):
            tree = ast.parse(text)
            for node in ast.walk(tree):
                for kind, data in _facts(node):
                    found.setdefault(kind, set()).update(data)
    return found


def _facts(node: ast.AST) -> Iterator[tuple[str, set[str]]]:
    match node:
        case ast.Call(func=ast.Attribute(attr="note") | ast.Name(id="Fact"), args=[first, *rest], keywords=keywords):
            data = {word.arg for word in keywords if word.arg and word.arg not in ("run_id", "task_id", "data")}
            for value in (*rest, *(word.value for word in keywords if word.arg == "data")):
                if isinstance(value, ast.Dict):
                    data |= {str(key.value) for key in value.keys if isinstance(key, ast.Constant)}
            if kind := _kind(first):
                yield kind, data
        case ast.Dict(values=values):
            for value in values:
                if kind := _kind(value):
                    yield kind, set()
        case ast.IfExp(body=body, orelse=other):
            for value in (body, other):
                if kind := _kind(value):
                    yield kind, set()
        case _:
            return


def _kind(node: ast.AST) -> str | None:
    match node:
        case ast.Attribute(value=ast.Name(id="FactKind"), attr=name):
            return FactKind[name].value
        case _:
            return None


# --- storage


def storage(words: Words) -> list[str]:
    reasons, told = words["reasons"], words["tables"]
    compared("storage", told, tables.TABLES)
    page = opened("What is stored", "storage.toml")
    page += [
        "Every table of the registry with every column, and why it may be kept. Nothing else is stored: no transcript,",
        "no output of a program, no value of an environment variable, no token.",
        "",
    ]
    page += table(("reason", "what it means"), ((f"*{name}*", reasons[name]) for name in reasons))
    for name in sorted(tables.TABLES):
        page += ["", f"## {name}", "", told[name]["about"], "", *_columns(name, told[name]["columns"], reasons)]
        page += _rules(name)
    return page


def _columns(name: str, told: Mapping[str, list[str]], reasons: Mapping[str, str]) -> list[str]:
    columns = tables.TABLES[name].columns
    why = {column: reason for reason, group in told.items() for column in group}
    if len(why) != sum(len(group) for group in told.values()):
        raise Disagreement(f"storage: a column of {name} has two reasons")
    compared(f"storage of {name}", why, columns.keys())
    if unknown := sorted(set(told) - set(reasons)):
        raise Disagreement(f"storage of {name}: no such reason: {unknown[0]}")
    return table(
        ("column", "type", "may be empty", "refers to", "why it may be kept"),
        (
            (
                f"`{column.name}`",
                "number" if column.type.python_type is int else "text",
                "yes" if column.nullable else "",
                code(sorted(str(key.target_fullname) for key in column.foreign_keys)),
                why[column.name],
            )
            for column in columns
        ),
    )


def _rules(name: str) -> list[str]:
    made = tables.TABLES[name]
    lines = [
        f"- `{rule.name}`: `{rule.sqltext}`"
        for rule in sorted(
            (rule for each in (made, *made.columns) for rule in each.constraints), key=lambda rule: str(rule.name)
        )
        if isinstance(rule, CheckConstraint)
    ]
    lines += [
        f"- `{index.name}`: at most one row for {code((column.name for column in index.columns), ', ')}"
        + (f" where `{where}`" if (where := index.dialect_options["sqlite"]["where"]) is not None else "")
        for index in tables.UNIQUE
        if index.table is made
    ]
    if name in tables.LIFECYCLES:
        lines.append(f"- a trigger refuses every move of `state` that the {tables.LIFECYCLES[name].name} table lacks")
    if name == "event":
        lines.append("- a trigger refuses every change of a row")
    return ["", "The database refuses whatever breaks these:", "", *lines] if lines else []


# --- config


def config(words: Words) -> list[str]:
    keys, variables, prose = words["keys"], words["variables"], words["page"]
    compared("config.toml", keys, set(_popped((PACKAGE / "config.py").read_text("utf-8"))))
    named = {
        name
        for path, text in modules()
        if not path.startswith("proof/")
        for name in re.findall(r"\bTENUTO_[A-Z][A-Z_]*\b", text)
    }
    compared("variables", variables, named)
    page = [*opened("Configuration", "config.toml"), prose["file"], "", "## config.toml", ""]
    page += table(
        ("name", "form", "default", "what it sets"),
        ((f"`{name}`", told["form"], told["default"], told["about"]) for name, told in keys.items()),
    )
    page += ["", prose["policy"], "", "## Variables", "", prose["variables"], ""]
    page += table(
        ("variable", "for", "what it does"),
        ((f"`{name}`", told["who"], told["about"]) for name, told in sorted(variables.items())),
    )
    return [*page, "", "## Where things lie", "", prose["places"]]


def _popped(text: str) -> Iterator[str]:
    """The names that are taken out of what the file told."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="told"), attr="pop"), args=[ast.Constant(value=str(key)), *_]
            ):
                yield key
            case _:
                continue


# --- wire


def wire(words: Words) -> list[str]:
    """The executor wire: every frame with its fields, and the golden file that shows it."""
    compared("wire", words["page"], ("about", "come", "rules"))
    page = opened("The executor wire", "wire.toml")
    about = [
        ("protocol", f"`{frames.protocol()}`; two sides may be {frames.SKEW} version apart"),
        ("largest frame", f"{frames.LIMIT // 2**20} MiB"),
        ("name", code([frames.NAME.pattern])),
        ("incarnation", code([frames.LIFE.pattern])),
    ]
    page += [words["page"]["about"].strip(), "", *table(("", ""), about), "", "## Coming", ""]
    page += [words["page"]["come"].strip(), "", "## What holds", "", words["page"]["rules"].strip(), ""]
    page += ["## Frames", ""]
    page += ["An example of each lies in `tests/wire/golden/`, read by the tests of both sides.", ""]
    for name, kind in frames.FRAMES.items():
        page += [f"### {name}", "", *_told(kind), ""]
    page += ["## Values within frames", ""]
    for part in (frames.Entry, frames.Subject, frames.Target, frames.CommandSeen, Asking, Ending, Hindered):
        page += [f"### {part.__name__}", "", *_told(part), ""]
    return page[:-1]


def _told(kind: type) -> list[str]:
    """What a value is for, and its fields."""
    rows = []
    hints = typing.get_type_hints(kind)
    for one in fields(kind):
        always = one.default is MISSING and one.default_factory is MISSING and type(None) not in _parts(hints[one.name])
        rows.append((code([one.name]), _said(hints[one.name]), "always" if always or one.name == "how" else ""))
    return [inspect.cleandoc(kind.__doc__ or ""), "", *table(("field", "type", ""), rows)]


def _parts(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else ()


def _said(hint: Any) -> str:
    """A type in the words of JSON."""
    hint = next((each for each in _parts(hint) if each is not type(None)), hint)
    if typing.get_origin(hint) is tuple:
        return f"list of {_said(typing.get_args(hint)[0])}"
    if typing.get_origin(hint) is Mapping:
        return "object of texts" if typing.get_args(hint)[1] is str else "object"
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return "one of " + code(hint)
    named = {str: "text", bool: "true or false", int: "whole number", float: "seconds", datetime: "moment with offset"}
    named |= {
        Rank: "rank, 1 to 5",
        CommandId: "command id",
        TaskId: "task id",
        AttemptId: "attempt id",
        RunId: "run id",
    }
    return named.get(hint) or f"[{hint.__name__}](#{hint.__name__.lower()})"


MAKERS: Mapping[str, Callable[[Words], list[str]]] = {
    "features": features,
    "policy": policy,
    "events": events,
    "storage": storage,
    "config": config,
    "wire": wire,
}


def words_of(name: str) -> Words:
    return tomllib.loads((PAGES / f"{name}.toml").read_text("utf-8"))


def page_of(name: str) -> str:
    """The whole page; raises Disagreement."""
    return "\n".join(MAKERS[name](words_of(name))) + "\n"


def main(arguments: list[str]) -> int:
    checking = arguments == ["--check"]
    if arguments and not checking:
        print("usage: reference.py [--check]", file=sys.stderr)
        return 2
    wrong = 0
    for name in MAKERS:
        path = PAGES / f"{name}.md"
        try:
            text = page_of(name)
        except Disagreement as disagreement:
            print(f"{name}: {disagreement}", file=sys.stderr)
            wrong += 1
            continue
        if path.is_file() and path.read_text("utf-8") == text:
            continue
        if checking:
            print(f"{path.relative_to(ROOT)} is not what the code says; run scripts/reference.py", file=sys.stderr)
            wrong += 1
        else:
            path.write_text(text, "utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
