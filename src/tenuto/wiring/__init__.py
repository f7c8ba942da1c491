"""Puts the rooms together: the one place that knows them all.

Builds the supervisor from settings, starts it, looks at it, and fulfils what the command line needs from outside.
"""
