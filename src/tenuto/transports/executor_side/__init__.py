"""The executor's side of the wire, for executors that are written in Python.

`Peer` connects, greets, and comes back after every break; `Keeping` is the journal; `Carrying` puts both under a
callback that carries one command out. Whoever uses them journals before every step that cannot be undone, and says
afterwards what the journal says.
"""
