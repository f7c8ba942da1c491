"""A checkout of exactly one commit, apart from everybody's working tree: for the gate, and for who reviews.

It borrows the objects of the repository the chain works in, and fetches what is missing from where it was pushed. It is
ours to throw away: nothing of anybody's is in it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tenuto.model.faults import Mistake
from tenuto.ports import Checkout
from tenuto.transports.forge.git import COMMIT, Failed, Git, ref_of


@dataclass(frozen=True)
class Checkouts:
    """Implements `ports.Checkouts` in a directory of our own."""

    place: Path

    def make(self, wanted: Checkout) -> str:
        """The path at which the commit stands, clean; OSError with the reason where it cannot be had."""
        path = self._path(wanted.name)
        try:
            if not COMMIT.fullmatch(wanted.commit):
                raise Failed("no whole commit is named")
            self._cloned(wanted, path)
            git = Git(path)
            if not _has(git, wanted.commit):
                self._fetched(wanted, git)
            git.run("checkout", "--quiet", "--force", "--detach", wanted.commit)
            git.run("clean", "--quiet", "-ffdx")
            return str(path)
        except (Failed, Mistake) as why:
            raise OSError(f"commit {wanted.commit[:12]} cannot be checked out: {why}") from None

    def clear(self, beginning: str) -> None:
        """Throw away every one whose name begins so."""
        if self._path(beginning).parent.is_dir():
            for path in self.place.glob(f"{beginning}*"):
                shutil.rmtree(path, ignore_errors=True)

    def _path(self, name: str) -> Path:
        if not name.replace("-", "").isalnum() or not name.isascii():
            raise OSError("a checkout has a plain name")
        return self.place / name

    def _cloned(self, wanted: Checkout, path: Path) -> None:
        if (path / ".git" / "made").is_file():
            return
        shutil.rmtree(path, ignore_errors=True)
        self.place.mkdir(parents=True, exist_ok=True, mode=0o700)
        arguments = ("clone", "--quiet", "--shared", "--no-checkout", "--no-tags", "--", wanted.repository, str(path))
        Git(self.place).run(*arguments)
        (path / ".git" / "made").touch()

    @staticmethod
    def _fetched(wanted: Checkout, git: Git) -> None:
        """What is missing, from the remote that is named, or from where the repository itself came from."""
        source = wanted.remote
        if source is None:
            source = Git(Path(wanted.repository)).run("remote", "get-url", "origin").strip()
        try:
            git.run("fetch", "--quiet", "--no-tags", "--", source, ref_of(wanted.branch))
        except Failed:
            git.run("fetch", "--quiet", "--no-tags", "--", source, f"refs/pull/{wanted.number}/head")


def _has(git: Git, commit: str) -> bool:
    try:
        git.run("cat-file", "-e", f"{commit}^{{commit}}")
    except Failed:
        return False
    return True
