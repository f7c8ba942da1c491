"""The ways this program is shown to keep its promises.

Kill points, the crash matrix, the seeded simulation and the demonstration live here,
beside the wiring. The rest of the package sees only a fuse that never blows.
"""
