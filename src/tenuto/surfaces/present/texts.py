"""Texts of our own: their body where it is kept, and that and when it was removed where it is not."""

from __future__ import annotations

from typing import Any

from tenuto.model.work import Text
from tenuto.surfaces.present.rows import instant


def body(text: Text | None) -> str | None:
    """The words themselves, None where they are not kept."""
    return None if text is None else text.body


def removed(text: Text | None) -> dict[str, Any] | None:
    """That a text was removed, its time being over, and when; None where it is kept.

    `at` is None where it was done before moments of it were kept. The digest (sha256, hex) tells whether a text that
    somebody still has is the one that was.
    """
    if text is None or text.body is not None:
        return None
    when = "" if text.removed_at is None else f" on {text.removed_at:%Y-%m-%d}"
    said = f"removed{when}: it was kept as long as it was to be; its digest is {text.digest[:12]}"
    return {"at": instant(text.removed_at), "digest": text.digest, "text": said}
