"""Hooks of agent programs: lines in a user's own settings that have a program tell what it does.

They are evidence, and never in a program's way: what is written is shown first and taken back byte for byte, and what
is called by a hook ends in bounded time with nothing said, whatever is wrong.
"""
