"""The wheel: look, reconcile, decide, write ahead, act, settle.

One turn of it takes what is due, asks the core what should happen and hands over
only what the ledger has already recorded. It also keeps the desk of verbs through
which operators and agents speak. It knows the world by its ports alone.
"""
