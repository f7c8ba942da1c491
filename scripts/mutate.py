"""Change the core in one small place at a time and see whether some test notices.

    scripts/mutate.py [--sample N] [--seed N] [--share F] [--quick] [--only PART] [--workers N] [--list]

Decides which of the changes are let live: a mutant that no test kills is a survivor, and each stands in
tests/core/survivors.toml with the reason why it does no harm. Refuses (exit 1) survivors without a reason beyond the
share that is let pass, and any reason for a mutant that is not there. Mutants are named by module, function, kind and
their number in the function, so that a name outlives changes elsewhere.

The tests are collected once, in one process, and each is watched once for the functions of the core that it calls. A
mutant is then put into a fork of that process, which asks only the tests that reach its function; where a change is in
no body of a function, a program of its own imports it from a copy. Nothing of the tree is changed. A sample has some of
every module.
"""

from __future__ import annotations

import argparse
import ast
import copy
import ctypes
import gc
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType

import psutil
import pytest

TOP = Path(__file__).resolve().parent.parent
PACKAGE = TOP / "src" / "tenuto"
CORE = PACKAGE / "core"
KEPT = TOP / "tests" / "core" / "survivors.toml"
#: What is asked of the core alone, and beside it over a ledger.
QUICK = ("tests/core",)
SLOW = (
    "tests/playbooks",
    "tests/surfaces/test_present.py",
    "tests/surfaces/test_spawn.py",
    "tests/surfaces/test_supervising.py",
    "tests/surfaces/test_supervision_cases.py",
    "tests/surfaces/test_verbs.py",
    "tests/chains/test_engine.py",
    "tests/chains/test_merging.py",
)
#: Seconds after which a mutant counts as killed, and a single test as failed: a mutant may go round for ever. The last
#: is for learning what reaches what.
LIMIT = 600
EACH = 60
LEARNING = 7200
#: What a judge says of a mutant that no test notices, and how it begins when it cannot tell.
ALIVE = "alive"
BROKEN = "broken"
#: The fewest mutants of a module in a sample.
LEAST = 3

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
SUMS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: `name` is MODULE:FUNCTION:KIND:NUMBER, `site` the number of the node in its module's walk."""

    name: str
    module: str
    where: str
    line: int
    kind: str
    site: int


def _kinds(node: ast.AST, parent: ast.AST | None) -> Iterator[str]:
    """The ways in which a node can be changed."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield "compare"
        case ast.BoolOp():
            yield "and-or"
            yield "drop-first"
            yield "drop-last"
        case ast.UnaryOp(op=ast.Not()):
            yield "not"
        case ast.BinOp(op=op) if type(op) in SUMS and not isinstance(node.left, ast.JoinedStr):
            yield "sum"
        case ast.Constant(value=bool()):
            yield "truth"
        case ast.Constant(value=int()):
            yield "number"
        case ast.If() | ast.IfExp():
            yield "always"
            yield "never"
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield "return-none"
        case ast.Expr(value=ast.Call()) if not isinstance(parent, ast.Module):
            yield "drop-call"
        case ast.comprehension(ifs=[_, *_]):
            yield "no-filter"
        case _:
            pass


def mutants_of(path: Path) -> list[Mutant]:
    """Every mutant of a module, in the order of its source."""
    tree = ast.parse(path.read_text("utf-8"))
    counted: Counter[tuple[str, str]] = Counter()
    found = []
    for site, (node, parent, where) in enumerate(_walk(tree, None, "")):
        if not where:
            continue  # constants of a module are numbers that a person has chosen
        for kind in _kinds(node, parent):
            counted[where, kind] += 1
            name = f"{path.stem}:{where}:{kind}:{counted[where, kind]}"
            found.append(Mutant(name, path.stem, where, getattr(node, "lineno", 0), kind, site))
    return found


def _walk(node: ast.AST, parent: ast.AST | None, where: str) -> Iterator[tuple[ast.AST, ast.AST | None, str]]:
    """Every node that is run, with its parent and the function it is in; annotations and docstrings are left out."""
    yield node, parent, where
    for name, held in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in held if isinstance(held, list) else [held]:
            if not isinstance(child, ast.AST):
                continue
            inner = where
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = f"{where}.{child.name}" if where else child.name
            elif isinstance(child, ast.ClassDef):
                inner = f"{where}.{child.name}" if where else ""
            yield from _walk(child, node, inner)


def changed(path: Path, mutant: Mutant) -> ast.Module:
    """The module with the one change."""
    tree = ast.parse(path.read_text("utf-8"))
    nodes = [node for node, _, _ in _walk(tree, None, "")]
    _change(nodes[mutant.site], mutant.kind, tree)
    return ast.fix_missing_locations(tree)


def mutated(path: Path, mutant: Mutant) -> str:
    """The module's source with the one change."""
    return ast.unparse(changed(path, mutant))


def _change(node: ast.AST, kind: str, tree: ast.Module) -> None:
    match node, kind:
        case ast.Compare(), "compare":
            node.ops = [COMPARISONS[type(node.ops[0])]()]
        case ast.BoolOp(), "and-or":
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.BoolOp(), "drop-first":
            node.values = node.values[1:] if len(node.values) > 2 else [node.values[1], copy.deepcopy(node.values[1])]
        case ast.BoolOp(), "drop-last":
            node.values = node.values[:-1] if len(node.values) > 2 else [node.values[0], copy.deepcopy(node.values[0])]
        case ast.UnaryOp(), "not":
            _replace(tree, node, ast.Call(ast.Name("bool", ast.Load()), [node.operand], []))
        case ast.BinOp(), "sum":
            node.op = SUMS[type(node.op)]()
        case ast.Constant(value=bool(value)), "truth":
            node.value = not value
        case ast.Constant(value=int(value)), "number":
            node.value = value + 1
        case ast.If() | ast.IfExp(), "always" | "never":
            node.test = ast.Constant(kind == "always")
        case ast.Return(), "return-none":
            node.value = ast.Constant(None)
        case ast.Expr(), "drop-call":
            node.value = ast.Constant(None)
        case ast.comprehension(), "no-filter":
            node.ifs = []
        case _:
            raise AssertionError(f"nothing is known of {kind} at {type(node).__name__}")


def _replace(tree: ast.Module, old: ast.AST, new: ast.expr) -> None:
    for parent in ast.walk(tree):
        for name, held in ast.iter_fields(parent):
            if held is old:
                setattr(parent, name, new)
            elif isinstance(held, list) and any(each is old for each in held):
                setattr(parent, name, [new if each is old else each for each in held])


# -- which tests reach which function


def outermost(code: CodeType) -> tuple[str, str]:
    """A function of the core as it is asked for: its module and the function that everything in it belongs to."""
    return Path(code.co_filename).stem, code.co_qualname.split(".<locals>")[0]


class Reached:
    """Notes which functions of the core are called while something runs."""

    def __init__(self) -> None:
        self.found: set[tuple[str, str]] = set()
        self._known: dict[CodeType, bool] = {}

    def __call__(self, frame: FrameType, event: str, _arg: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in self._known:
            self._known[code] = Path(code.co_filename).parent == CORE
            if self._known[code]:
                self.found.add(outermost(code))

    def __enter__(self) -> Reached:
        threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)


def _holds(function: str, where: str) -> bool:
    """Whether a function, by its qualified name, is the one that a mutant is in; names of mutants leave classes out."""
    return any(f"{where}.".startswith(f"{name}.") for name in (function, function.partition(".")[2]) if name)


# -- a change of what is already imported


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for held in code.co_consts:
        if isinstance(held, CodeType):
            yield from _codes(held)


def _keyed(code: CodeType) -> dict[tuple[str, int], list[CodeType]]:
    found: dict[tuple[str, int], list[CodeType]] = {}
    for each in _codes(code):
        found.setdefault((each.co_qualname, each.co_firstlineno), []).append(each)
    return found


def put_in(mutant: Mutant) -> int:
    """Change every function that is there as the mutant has it; how many were. None can be, where it is in no body."""
    path = CORE / f"{mutant.module}.py"
    before = _keyed(compile(path.read_text("utf-8"), str(path), "exec"))
    after = _keyed(compile(changed(path, mutant), str(path), "exec"))
    pairs = [
        (old, new)
        for key in before.keys() & after.keys()
        if len(before[key]) == len(after[key])
        for old, new in zip(before[key], after[key], strict=True)
        if old != new and old.co_freevars == new.co_freevars
    ]
    count = 0
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename == str(path):
            for old, new in pairs:
                if each.__code__ == old:
                    each.__code__ = new
                    count += 1
                    break
    return count


# -- judging


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: killed by which test or why, or alive though so many tests reached it."""

    mutant: Mutant
    killed_by: str | None
    asked: int


class Judge:
    """A pytest of its own: it collects once, learns which test reaches what, and judges each mutant in a fork.

    Whatever a fork leaves behind, processes and files, is ended and taken away with it.
    """

    def __init__(self, chosen: Sequence[Mutant], scratch: Path, workers: int) -> None:
        self.chosen = chosen
        self.scratch = scratch
        self.workers = workers
        self.verdicts: list[Verdict] = []
        self._failed: str | None = None

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self._failed is None:
            self._failed = report.nodeid

    @pytest.hookimpl
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise SystemExit("the tests cannot be collected as the tree is; nothing can be told of mutants")
        reaching, took = self._learnt(session)
        waiting = list(reversed(self.chosen))
        under_way: dict[int, tuple[Mutant, int, int]] = {}
        while waiting or under_way:
            while waiting and len(under_way) < self.workers:
                mutant = waiting.pop()
                items = self._covering(session, mutant, reaching, took)
                pid, read = self._forked(partial(self._one, session, items, mutant))
                under_way[pid] = (mutant, read, len(items))
            pid, _status = os.wait()
            if pid in under_way:
                mutant, read, count = under_way.pop(pid)
                with os.fdopen(read, "rb") as told:
                    word = told.read().decode()
                if not word or word.startswith(BROKEN):
                    raise SystemExit(f"{mutant.name} could not be judged: {word or 'its judge died'}")
                verdict = Verdict(mutant, None if word == ALIVE else word, count)
                self.verdicts.append(verdict)
                fate = "SURVIVED" if verdict.killed_by is None else "killed  "
                by = f"{count} tests reach it" if verdict.killed_by is None else verdict.killed_by
                print(f"{fate} {mutant.name} (line {mutant.line}): {by}", flush=True)
        return True

    def _covering(
        self, session: pytest.Session, mutant: Mutant, reaching: Mapping[str, set[tuple[str, str]]],
        took: Mapping[str, float],
    ) -> list[pytest.Item]:  # fmt: skip
        """The tests that reach its function, or its module where no test reaches that by itself; quick files first."""
        exact = [
            item
            for item in session.items
            if any(m == mutant.module and _holds(f, mutant.where) for m, f in reaching[item.nodeid])
        ]
        found = exact or [item for item in session.items if any(m == mutant.module for m, _ in reaching[item.nodeid])]
        files: dict[str, list[float]] = {}
        for item in found:
            files.setdefault(str(item.path), []).append(took[item.nodeid])
        own = f"test_{mutant.module}"
        mean = {path: (Path(path).stem != own, sum(each) / len(each), path) for path, each in files.items()}
        return sorted(found, key=lambda item: mean[str(item.path)])

    def _learnt(self, session: pytest.Session) -> tuple[dict[str, set[tuple[str, str]]], dict[str, float]]:
        """What each test reaches and how long it takes; tests that fail as the tree is are left out and named."""
        pid, read = self._forked(partial(self._tracing, session), LEARNING)
        with os.fdopen(read, "rb") as told:
            lines = [json.loads(line) for line in told.read().splitlines()]
        os.waitpid(pid, 0)
        if len(lines) != len(session.items):
            raise SystemExit("the tests fail as the tree is; nothing can be told of mutants")
        if spoiled := [line["test"] for line in lines if not line["passed"]]:
            print(f"left out, because they fail as the tree is: {', '.join(spoiled)}", flush=True)
        if len(spoiled) * 50 > len(lines):
            raise SystemExit("too many tests fail as the tree is; nothing can be told of mutants")
        session.items[:] = [item for item in session.items if item.nodeid not in set(spoiled)]
        reaching = {line["test"]: {(m, f) for m, f in line["reached"]} for line in lines}
        print(f"{len(lines)} tests asked", flush=True)
        return reaching, {line["test"]: line["took"] for line in lines}

    def _tracing(self, session: pytest.Session, write: Callable[[bytes], object]) -> None:
        for item, after in zip(session.items, [*session.items[1:], None], strict=True):
            self._failed = None
            began = time.monotonic()
            with Reached() as reached:
                item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
            line = {
                "test": item.nodeid, "passed": self._failed is None, "took": time.monotonic() - began,
                "reached": sorted(reached.found),
            }  # fmt: skip
            write(json.dumps(line).encode() + b"\n")

    def _one(
        self, session: pytest.Session, items: Sequence[pytest.Item], mutant: Mutant, write: Callable[[bytes], object]
    ) -> None:
        if not items:  # nobody asks for what it changed
            write(ALIVE.encode())
            return
        reached = put_in(mutant)
        if not reached:  # it is in no body: a default, or a class as it is made
            files = sorted({str(item.path.relative_to(TOP)) for item in items})
            write((_anew(Path(os.environ["TMPDIR"]), mutant, files)).encode())
            return
        for item, after in zip(items, (*items[1:], None), strict=False):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
            if self._failed is not None:
                write(self._failed.encode())
                return
        write(ALIVE.encode())

    def _forked(self, do: Callable[[Callable[[bytes], object]], None], limit: float = LIMIT) -> tuple[int, int]:
        """A fork that minds another one, which does it: what that one leaves behind is ended when it is over."""
        read, write = os.pipe()
        home = Path(tempfile.mkdtemp(dir=self.scratch))
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            os.close(write)
            return pid, read
        try:
            os.close(read)
            os.setsid()
            _keep_orphans()
            self._minded(do, write, home, limit)
        finally:
            os._exit(0)

    def _minded(self, do: Callable[[Callable[[bytes], object]], None], write: int, home: Path, limit: float) -> None:
        pid = os.fork()
        if pid == 0:
            try:
                nowhere = os.open(os.devnull, os.O_RDWR)
                for each in (0, 1, 2):
                    os.dup2(nowhere, each)
                os.environ["TMPDIR"] = tempfile.tempdir = str(home)
                do(partial(os.write, write))
            except Exception as error:  # noqa: BLE001 - said by name, and nothing is concluded
                os.write(write, f"{BROKEN}: {error!r}".encode())
            finally:
                os._exit(0)
        until = time.monotonic() + limit
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > until:
                os.write(write, b"it does not end")
                break
            time.sleep(0.02)
        for _ in range(5):
            for child in psutil.Process().children(recursive=True):
                child.kill()
        shutil.rmtree(home, ignore_errors=True)


def _keep_orphans() -> None:
    """Become the parent of whatever a descendant leaves behind, where the system can (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def _anew(scratch: Path, mutant: Mutant, tests: Sequence[str]) -> str:
    """The verdict of a program that imports the mutant from a copy of the package."""
    overlay = scratch / "copy"
    shutil.copytree(PACKAGE, overlay / "src" / "tenuto", ignore=shutil.ignore_patterns("__pycache__"))
    for beside in ("skills", "extension"):  # the package finds them beside itself
        if (TOP / beside).exists():
            (overlay / beside).symlink_to(TOP / beside)
    path = CORE / f"{mutant.module}.py"
    (overlay / path.relative_to(TOP)).write_text(mutated(path, mutant), "utf-8")
    environ = {
        **os.environ, "PYTHONPATH": os.pathsep.join((str(overlay / "src"), str(TOP))), "PYTHONDONTWRITEBYTECODE": "1"
    }  # fmt: skip
    ask = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", *tests]
    ended = subprocess.run(
        ask, cwd=TOP, env=environ, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if ended.returncode == 0:
        return ALIVE
    named = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return named[0][:200] if named else "the tests could not be begun"


def run(chosen: Sequence[Mutant], workers: int, tests: Sequence[str]) -> list[Mutant]:
    """The survivors among them, told as they are found."""
    os.environ["CI"] = "true"  # every run tries the same examples
    with tempfile.TemporaryDirectory(prefix="tn-mu") as scratch:
        judge = Judge(chosen, Path(scratch), workers)
        os.chdir(TOP)
        pytest.main(
            ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", f"timeout={EACH}", "--no-header", *tests],
            plugins=[judge],
        )
        if len(judge.verdicts) != len(chosen):
            raise SystemExit("the judge ended before it had judged all")
        return [verdict.mutant for verdict in judge.verdicts if verdict.killed_by is None]


def kept() -> dict[str, str]:
    """The survivors that are let live, each with its reason."""
    told = tomllib.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    return {name: str(reason) for name, reason in told.get("survivors", {}).items()}


def drawn(mutants: Sequence[Mutant], size: int, seed: int) -> list[Mutant]:
    """So many of them as the seed has it: a few of each module, and the rest as it comes."""
    shuffled = list(mutants)
    random.Random(seed).shuffle(shuffled)  # noqa: S311 - no secret
    met: Counter[str] = Counter()
    first: list[Mutant] = []
    rest: list[Mutant] = []
    for mutant in shuffled:
        (first if met[mutant.module] < LEAST else rest).append(mutant)
        met[mutant.module] += 1
    return (first + rest)[:size]


def main() -> int:
    """Judge a sample, or the whole of the core."""
    asked = argparse.ArgumentParser(description="Mutation testing of the core")
    asked.add_argument("--sample", type=int, default=0, help="how many mutants, drawn by the seed; 0: all")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--only", default="", help="only mutants whose name begins so")
    asked.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    asked.add_argument("--share", type=float, default=0.0, help="the share that may survive without a reason")
    asked.add_argument("--quick", action="store_true", help="ask the tests of the core only")
    asked.add_argument("--list", action="store_true", help="name them and judge nothing")
    given = asked.parse_args()
    every = [mutant for path in sorted(CORE.glob("*.py")) for mutant in mutants_of(path)]
    names = {mutant.name for mutant in every}
    reasons = kept()
    if stale := sorted(set(reasons) - names):
        print(f"{KEPT.name} gives reasons for mutants that are not there: {', '.join(stale)}")
        return 1
    chosen = [mutant for mutant in every if mutant.name.startswith(given.only)]
    if given.sample:
        chosen = drawn(chosen, given.sample, given.seed)
    if given.list:
        print("\n".join(f"{mutant.name} {mutant.line}" for mutant in chosen))
        return 0
    survivors = run(chosen, given.workers, QUICK if given.quick else QUICK + SLOW)
    unknown = [mutant for mutant in survivors if mutant.name not in reasons]
    print(
        f"{len(chosen)} of {len(every)} mutants (seed {given.seed}): {len(chosen) - len(survivors)} killed, "
        f"{len(survivors)} survived, {len(unknown)} of them without a reason"
    )
    return 1 if len(unknown) > given.share * len(chosen) else 0


if __name__ == "__main__":
    raise SystemExit(main())
