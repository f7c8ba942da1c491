"""When two addresses are of one page."""

from __future__ import annotations


def bare(url: str) -> str:
    """An address as addresses are compared: without a slash at its path's end, and without a mark within the page.

    A fragment that begins with a slash or an exclamation mark is no such mark but says which page it is.
    """
    address, _, mark = url.partition("#")
    path, asks, query = address.partition("?")
    return path.removesuffix("/") + asks + query + (f"#{mark}" if mark.startswith(("/", "!")) else "")
