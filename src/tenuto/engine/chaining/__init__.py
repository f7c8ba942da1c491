"""The parts of chains: what is asked, the rows, the units, what is recorded, and the one step.

Each part owns one thing and is handed the ones it builds on; `engine.chains` puts them together and has the verbs.
"""
