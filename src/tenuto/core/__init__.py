"""The verbs: pure functions of what was seen and the present moment.

This room decides whether to continue, deliver, recover or ask, and says why. It
refuses to find anything out by itself: time, chance and identity are handed to it,
so the same snapshot gives the same decision on every day and every machine.
"""
