"""The workspace witness: read-only facts about the directory a task works in.

It tells what stands there, where HEAD is and a digest of everything not committed, so that
progress and interference can be seen. It decides nothing about them, and it changes nothing:
no lock is taken in the repository and nothing the repository configures is run.
"""

from tenuto.transports.workspace.facts import Kind, Workspace
from tenuto.transports.workspace.witness import commits_since, look

__all__ = ["Kind", "Workspace", "commits_since", "look"]
