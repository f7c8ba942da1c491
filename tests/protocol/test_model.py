"""The model of the protocol holds in every order of steps, and notices when a promise is taken out of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

MODEL = Path(__file__).parents[2] / "proofs" / "protocol.pml"
LIMIT = 1_500


def checked(folder: Path, *variant: str) -> str:
    """Look at every reachable state of a variant; what the checker says of it."""
    folder.mkdir(exist_ok=True)
    flags = ["-O2", "-w", "-DSAFETY", "-DNOCLAIM", "-DCOLLAPSE", "-DMEMLIM=6000"]
    for argv in (["spin", *variant, "-a", str(MODEL)], ["gcc", *flags, "-o", "checker", "pan.c"]):
        subprocess.run(argv, cwd=folder, check=True, capture_output=True, timeout=120)
    # The checker ends with 0 whatever it found, so what it says is what counts.
    argv = [str(folder / "checker"), "-m1000000", "-w26"]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True, timeout=LIMIT).stdout


def errors(said: str) -> int:
    found = re.search(r"errors: (\d+)", said)
    assert found is not None, said
    return int(found[1])


@pytest.mark.prove
@pytest.mark.timeout(LIMIT + 120)
@pytest.mark.parametrize(
    "variant",
    [("-DCRASHES=2", "-DTAKEOVERS=0"), ("-DCRASHES=0", "-DTAKEOVERS=1"), ("-DCRASHES=1", "-DTAKEOVERS=1")],
    ids=["two crashes", "a takeover", "a crash and a takeover"],
)
def test_no_order_of_steps_breaks_the_protocol(tmp_path: Path, variant: tuple[str, ...]) -> None:
    said = checked(tmp_path / "model", *variant)
    assert errors(said) == 0, said
    assert "Search not completed" not in said, said


@pytest.mark.prove
@pytest.mark.parametrize(
    ("variant", "broken"),
    [("-DHASTY", r"assertion violated \(row\[c\]!="), ("-DTRUSTING", r"assertion violated .*agent\[c\]")],
)
def test_a_promise_that_is_taken_out_is_missed(tmp_path: Path, variant: str, broken: str) -> None:
    said = checked(tmp_path / "model", variant)
    assert errors(said) == 1
    assert re.search(broken, said), said
