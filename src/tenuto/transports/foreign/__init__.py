"""Reading registries of other programs, and worktrees, in order to import what is unfinished in them.

Read only, and from copies where reading would write: no file of a source is changed, locked or left open. A format is
recognised by what stands in it, never by a name, and a value that is not known is named instead of guessed.
"""
