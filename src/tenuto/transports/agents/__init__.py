"""Agent programs with a structured channel: one host process per conversation speaks a program's own protocol.

What a program says is read into the neutral events of `events`; nobody outside this room knows a program's dialect.
"""
