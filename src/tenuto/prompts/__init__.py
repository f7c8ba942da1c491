"""The texts that are sent to agents, each with its version.

A prompt is data with a golden file beside its test, so that a changed word is a
deliberate change. Texts refer to rules the server enforces; they never replace them.
"""
