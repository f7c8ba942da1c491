"""The faces: command line, HTTP, MCP, dashboard and notifications.

All of them offer the same verbs of the engine's desk, with the same errors and the
same reasons. A face chooses words and layout; it decides nothing and never reaches
past the desk to a store or a transport.
"""
