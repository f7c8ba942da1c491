"""The MCP face: few tools, each one verb of the table, for agents that speak the Model Context Protocol.

It decides what a tool is called, how its flat arguments become a verb's parameters, and how little of an answer is
told. It refuses to hold any rule of its own: who may do what, and why not, is the desk's to say. The protocol's own
library is large, so nothing here imports it before somebody speaks the protocol.
"""
