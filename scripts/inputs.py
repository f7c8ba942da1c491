"""Say which inputs the lock belongs to, as one digest.

Only what decides the content of requirements.lock is looked at: the dependency
lists of pyproject.toml and requirements.in. Settings of tools beside them may
change without making the lock old.
"""

import hashlib
import json
import tomllib
from pathlib import Path


def digest(root: Path) -> str:
    """Return the digest, as "sha256:" and 64 hexadecimal digits, of the tree at root."""
    told = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    project = told["project"]
    extra = [line for line in (root / "requirements.in").read_text("utf-8").splitlines() if not line.startswith("#")]
    inputs = [
        project["requires-python"],
        project["dependencies"],
        project["optional-dependencies"],
        told["dependency-groups"],
        told["build-system"]["requires"],
        extra,
    ]
    return "sha256:" + hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    print(digest(Path(__file__).resolve().parent.parent))
