"""The changer of the core: its mutants have names of their own, are Python, and differ from what is there."""

from __future__ import annotations

import ast
import importlib.util
import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def mutate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutate", TOP / "scripts" / "mutate.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["mutate"] = made
    spec.loader.exec_module(made)
    return made


def test_every_mutant_has_a_name_of_its_own_and_changes_something(mutate: ModuleType) -> None:
    every = [mutant for path in sorted(mutate.CORE.glob("*.py")) for mutant in mutate.mutants_of(path)]
    assert len({mutant.name for mutant in every}) == len(every) > 1000
    assert len({mutant.kind for mutant in every}) == 13
    for mutant in random.Random(4).sample(every, 60):
        path = mutate.CORE / f"{mutant.module}.py"
        changed = mutate.mutated(path, mutant)
        compile(changed, mutant.name, "exec")
        assert changed != ast.unparse(ast.parse(path.read_text("utf-8"))), mutant.name


def test_reasons_are_given_for_mutants_that_are_there(mutate: ModuleType) -> None:
    names = {mutant.name for path in mutate.CORE.glob("*.py") for mutant in mutate.mutants_of(path)}
    reasons = mutate.kept()
    assert set(reasons) <= names
    assert all(len(reason) > 20 for reason in reasons.values()), "a reason is a sentence"


@pytest.mark.parametrize(
    ("before", "kind", "after"),
    [
        ("def f(a, b):\n    return a < b", "compare", "return a <= b"),
        ("def f(a, b):\n    return a and b", "and-or", "return a or b"),
        ("def f(a, b, c):\n    return a and b and c", "drop-first", "return b and c"),
        ("def f(a, b):\n    return a or b", "drop-last", "return a or a"),
        ("def f(a):\n    return not a", "not", "return bool(a)"),
        ("def f(a, b):\n    return a + b", "sum", "return a - b"),
        ("def f():\n    return g(True)", "truth", "return g(False)"),
        ("def f(a):\n    return a[1]", "number", "return a[2]"),
        ("def f(a):\n    if a:\n        g()", "never", "if False:"),
        ("def f(a):\n    if a:\n        g()", "always", "if True:"),
        ("def f(a):\n    return g(a)", "return-none", "return None"),
        ("def f(a):\n    g(a)\n    return a", "drop-call", "None\n    return a"),
        ("def f(a):\n    return [b for b in a if b]", "no-filter", "[b for b in a]"),
    ],
)
def test_each_kind_of_change(mutate: ModuleType, tmp_path: Path, before: str, kind: str, after: str) -> None:
    path = tmp_path / "m.py"
    path.write_text(before)
    (mutant,) = [each for each in mutate.mutants_of(path) if each.kind == kind]
    assert after in mutate.mutated(path, mutant)


def test_a_sample_has_some_of_every_module(mutate: ModuleType) -> None:
    every = [mutant for path in sorted(mutate.CORE.glob("*.py")) for mutant in mutate.mutants_of(path)]
    drawn = mutate.drawn(every, 150, 3)
    assert len({mutant.name for mutant in drawn}) == 150
    assert {mutant.module for mutant in drawn} == {mutant.module for mutant in every}
    assert drawn == mutate.drawn(every, 150, 3)


def test_a_change_is_put_into_functions_that_are_there(mutate: ModuleType) -> None:
    """In a process of its own, since it stays there: a method, a nested function and a table's lambda are changed."""
    script = """
import sys
sys.path.insert(0, {scripts!r})
import mutate
from datetime import timedelta
from tenuto.core import caps, classify
from tenuto.model.lifecycle import TaskState
every = {{one.name: one for path in mutate.CORE.glob('*.py') for one in mutate.mutants_of(path)}}
assert caps._spelled('max-live', timedelta(hours=2)) == '2 h'
assert mutate.put_in(every['caps:_spelled:number:1']) == 1
assert caps._spelled('max-live', timedelta(hours=2)) != '2 h'
assert mutate.put_in(every['classify:_state:compare:1']) > 1, 'every row of the table has one of its own'
assert mutate.put_in(every['draft:wake:truth:1']) == 0, 'a default is in no body'
"""
    told = subprocess.run(
        [sys.executable, "-c", script.format(scripts=str(TOP / "scripts"))],
        capture_output=True, text=True, check=False, cwd=TOP, timeout=300,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
