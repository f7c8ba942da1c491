"""The hands and eyes: executors that act, witnesses that observe.

Each transport claims a command in its own journal before it does anything that
cannot be undone, and reports what it saw with its rank and moment. It decides
nothing: what a sighting means is for the core.
"""
