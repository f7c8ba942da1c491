"""Puts the rooms together: the one place that knows them all, and the entry of the command line."""
