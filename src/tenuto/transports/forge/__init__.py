"""Hosts of repositories that are git and nothing else, and checkouts of one commit.

What is pushed replaces exactly what was there: anything else is refused by the remote. Nothing here runs a hook, asks
for a password, or touches the working tree of anybody.
"""
