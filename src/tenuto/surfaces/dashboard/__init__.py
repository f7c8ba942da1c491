"""The page an operator keeps open: runs, tasks, waits and what needs a person.

It shows what the supervisor says, live, and forwards each action as one request.
It keeps no state of its own that would have to be believed.
"""
