"""The memory: the ledger on SQLite or PostgreSQL, behind the Ledger port.

Tables refuse what the lifecycles forbid, and every transition is one transaction
in which the supervisor's epoch still holds. Nothing outside this room writes SQL,
and nothing inside it talks to a page, a program or the network beyond its database.
"""
