"""The `tenuto` command, also as `python -m tenuto`: the rooms, put together, and the proofs about them."""

from __future__ import annotations


def main() -> None:
    """Run the command line on the world as it is."""
    from tenuto.proof.offered import Proofs
    from tenuto.surfaces.cli import main as command_line
    from tenuto.wiring.entrances import RealEntrances

    command_line(RealEntrances(proofs=Proofs()))


if __name__ == "__main__":
    main()
