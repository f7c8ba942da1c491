"""What this program costs, measured beside what nobody can beat.

One module for each question; each has `measure(place, effort)`, which works in the directory it is given, leaves
nothing running and yields rows. An effort of 1 is the whole count of repetitions. Nothing here is a test: a slow
machine is no fault, so what counts are ratios and differences of figures taken in one run.
"""
