"""The places where the units of a chain live: files, logs, rows, issues.

A source answers what is done, in flight, blocked or eligible, at which revision,
from positive evidence in a fixed order. It never guesses that missing means done,
and it mends nothing in silence.
"""
