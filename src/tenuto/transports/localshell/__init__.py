"""Reading what a Local Shell MCP server leaves in its state directory: sessions, plans, calls in flight, jobs.

Read only: nothing here writes into a server's directory, takes its locks or talks to it. What its disk tells late (an
expired claim, a job that ended, a call whose server died) is corrected from what else stands there.
"""
