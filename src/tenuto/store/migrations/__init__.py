"""The steps that carry a registry from each released schema to the present one.

A step only moves forward and gives old records safe, manual defaults. A registry
newer than the program is refused with a clear error, never guessed at.
"""
