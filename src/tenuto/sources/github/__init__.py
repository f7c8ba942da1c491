"""GitHub, as a source of units and as a host of pull requests.

What is asked is asked over REST and bounded; what is written is looked for first. An answer that did not come is no
answer: it is looked up again before anything is written a second time.
"""
