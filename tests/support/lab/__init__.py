"""A chat site of our own, on loopback, under the names of the real one.

It looks like the pages that site profiles describe, takes turns, streams answers and misbehaves when told to. What it
decides is what was accepted: its list of user turns is the judge of duplicates and losses. It refuses every host but
its own names, so that a browser that goes through its door can reach nothing else.
"""

from tests.support.lab.lab import Lab
from tests.support.lab.state import Accepted, Answer, Look, Past

__all__ = ["Accepted", "Answer", "Lab", "Look", "Past"]
