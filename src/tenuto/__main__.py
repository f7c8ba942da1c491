"""Lets `python -m tenuto` be the `tenuto` command."""

from tenuto.wiring import main

if __name__ == "__main__":
    main()
