"""The nouns: frozen values, and lifecycles written as tables.

Everything else in the package is said in these words. A value here knows its own
shape and which moves its lifecycle allows; it reads no clock, draws no chance and
touches nothing outside memory.
"""
