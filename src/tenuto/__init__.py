"""Keep long-running work by AI agents going until it is done.

A task outlives the conversations that work on it. Every act on the world is a row
before it is made, what cannot be proven is never repeated, and a person is asked
only for what a person alone can settle. This package holds the supervisor that
decides, the executors that act and observe, and the faces people look at.
"""

__version__ = "0.1.0"
