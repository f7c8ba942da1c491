"""Years that pass in minutes: the real core, wheel, cycle, desk and ledger, among played machines and people.

Everything that is outside a supervisor is played here, and everything that can go wrong there does: hosts die, rings
are lost, disks fill up, clocks jump, and a second supervisor takes over while the first still means to act. All of it
follows from one seed, so a world that broke a promise can be lived through again, and made smaller.
"""
