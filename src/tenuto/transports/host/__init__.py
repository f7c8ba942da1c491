"""Plain programs, each turn under a small host process of its own.

The host claims its journal, starts the program and writes down how it ended; it needs nobody of ours to
live. This side launches hosts, reads their journals and tells what is left running. What the host itself
imports (turn, carry, claim, program, kin, watch, fences) stands on the standard library alone.
"""
