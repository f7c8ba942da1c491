"""The command line: every verb of the operator and of an agent in its turn, as a program of the shell.

It decides what is said, how it is laid out and which exit code a script sees. It refuses to hold any rule of its own:
verbs are the supervisor's, reached over its socket, and what lies outside a face comes in through `Entrances`.
"""
