"""The proofs that the command line offers; each is imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Callable

from tenuto.surfaces.cli.entrances import Proof


class Proofs:
    """Demonstration, crash matrix, simulation and bench."""

    def demo(self, *, keep: bool, say: Callable[[str], None]) -> Proof:
        """The demonstration."""
        from tenuto.proof.demo import demo

        return demo(keep=keep, say=say)

    def crash_matrix(self, *, points: int, seed: int, jobs: int, only: str | None, say: Callable[[str], None]) -> Proof:
        """Kill at many points."""
        from tenuto.proof.matrix import as_proof

        return as_proof(points=points, seed=seed, jobs=jobs, say=say, only=only)

    def simulate(
        self,
        *,
        seed: int,
        tasks: int,
        days: float,
        worlds: int,
        turns_a_day: float,
        jobs: int,
        say: Callable[[str], None],
    ) -> Proof:
        """Live through simulated worlds."""
        from tenuto.proof.simulation.run import as_proof

        return as_proof(seed=seed, tasks=tasks, days=days, worlds=worlds, turns_a_day=turns_a_day, jobs=jobs, say=say)

    def bench(self, *, seconds: int, say: Callable[[str], None]) -> Proof:
        """Measure this machine."""
        from tenuto.proof.bench import bench

        return bench(seconds=seconds, say=say)
