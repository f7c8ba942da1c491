"""Change the core in one small place at a time and see whether some test notices.

    scripts/mutate.py [--sample N] [--seed N] [--share F] [--quick] [--only PART] [--workers N] [--list]

Decides which of the changes are let live: a mutant that no test kills is a survivor, and each stands in
tests/core/survivors.toml with the reason why it does no harm. Refuses (exit 1) survivors without a reason beyond the
share that is let pass, and any reason for a mutant that is not there. Mutants are named by module, function, kind and
their number in the function, so that a name outlives changes elsewhere. The tests of the core are asked first; what
lives on meets the ones over a ledger. Nothing of the tree is changed: each mutant lives in a copy of the package that
is put before it on the path.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

TOP = Path(__file__).resolve().parent.parent
PACKAGE = TOP / "src" / "tenuto"
CORE = PACKAGE / "core"
KEPT = TOP / "tests" / "core" / "survivors.toml"
#: What is asked, in this order; whoever fails first has killed the mutant.
QUICK = ("tests/core",)
SLOW = (
    "tests/playbooks",
    "tests/surfaces/test_supervising.py",
    "tests/surfaces/test_supervision_cases.py",
    "tests/surfaces/test_spawn.py",
    "tests/chains",
)
#: Seconds after which a test run counts as killed: a mutant may go round for ever.
LIMIT = 600

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
            found.append(Mutant(name, path.stem, getattr(node, "lineno", 0), kind, site))
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


def mutated(path: Path, mutant: Mutant) -> str:
    """The module's source with the one change."""
    tree = ast.parse(path.read_text("utf-8"))
    nodes = [node for node, _, _ in _walk(tree, None, "")]
    _change(nodes[mutant.site], mutant.kind, tree)
    return ast.unparse(ast.fix_missing_locations(tree))


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


# -- running


def killed(overlay: Path, mutant: Mutant, asked: Sequence[Sequence[str]]) -> bool:
    """Whether some test of those that are asked notices it, in a copy of the package that is ours."""
    target = overlay / "src" / "tenuto" / "core" / f"{mutant.module}.py"
    before = target.read_text("utf-8")
    target.write_text(mutated(CORE / f"{mutant.module}.py", mutant), "utf-8")
    try:
        own = f"tests/core/test_{mutant.module}.py"
        first = [(own,)] if (TOP / own).exists() else []
        return any(_fails(overlay, tests) for tests in (*first, *asked))
    finally:
        target.write_text(before, "utf-8")


def _fails(overlay: Path, tests: Sequence[str]) -> bool:
    path = os.pathsep.join((str(overlay / "src"), str(TOP)))
    environ = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    ask = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", *tests]
    try:
        ended = subprocess.run(
            ask, cwd=TOP, env=environ, check=False, timeout=LIMIT, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return True
    return ended.returncode != 0


def run(chosen: Sequence[Mutant], workers: int, asked: Sequence[Sequence[str]]) -> list[Mutant]:
    """The survivors among them, told as they are found."""
    with tempfile.TemporaryDirectory(prefix="tn-mutate-") as scratch:
        free: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            overlay = Path(scratch) / str(number)
            shutil.copytree(PACKAGE, overlay / "src" / "tenuto", ignore=shutil.ignore_patterns("__pycache__"))
            for beside in ("skills", "extension"):  # the package finds them beside itself
                if (TOP / beside).exists():
                    (overlay / beside).symlink_to(TOP / beside)
            free.put(overlay)
        first = free.get()
        free.put(first)
        if any(_fails(first, tests) for tests in asked):
            raise SystemExit("the tests fail as the tree is; nothing can be told of mutants")

        def one(mutant: Mutant) -> bool:
            overlay = free.get()
            try:
                return killed(overlay, mutant, asked)
            finally:
                free.put(overlay)

        survivors = []
        with ThreadPoolExecutor(workers) as pool:
            for mutant, dead in zip(chosen, pool.map(one, chosen), strict=True):
                print(f"{'killed  ' if dead else 'SURVIVED'} {mutant.name} (line {mutant.line})", flush=True)
                if not dead:
                    survivors.append(mutant)
        return survivors


def kept() -> dict[str, str]:
    """The survivors that are let live, each with its reason."""
    told = tomllib.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    return {name: str(reason) for name, reason in told.get("survivors", {}).items()}


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
        chosen = random.Random(given.seed).sample(chosen, min(given.sample, len(chosen)))  # noqa: S311 - no secret
    if given.list:
        print("\n".join(f"{mutant.name} {mutant.line}" for mutant in chosen))
        return 0
    survivors = run(chosen, given.workers, (QUICK,) if given.quick else (QUICK, SLOW))
    unknown = [mutant for mutant in survivors if mutant.name not in reasons]
    print(
        f"{len(chosen)} of {len(every)} mutants (seed {given.seed}): {len(chosen) - len(survivors)} killed, "
        f"{len(survivors)} survived, {len(unknown)} of them without a reason"
    )
    return 1 if len(unknown) > given.share * len(chosen) else 0


if __name__ == "__main__":
    raise SystemExit(main())
