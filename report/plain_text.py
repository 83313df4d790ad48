"""Text that strangers may have written, made safe to show: names, hosts, whatever a file says.

A terminal obeys control characters, and other characters that cannot be seen turn a line around or
tear it in two. None of them has a place in a name.
"""

import hashlib
import re
from typing import Any

_UNPRINTABLE = "?"
_CUT = "..."


def plain(text: str, *, limit: int | None = None) -> str:
    """One line that can be seen: `?` stands for each character that cannot, `...` for the rest."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else _UNPRINTABLE for c in text)
    return text if limit is None or len(text) <= limit else text[:limit] + _CUT


def file_name(text: str) -> str:
    """A name for a file, the same for the same text and for no other; most names are their own."""
    if re.fullmatch(r"[a-z0-9_]{1,64}", text):
        return text
    readable = re.sub(r"[^A-Za-z0-9_]+", "-", text)[:40]
    return f"{readable}-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:12]}"


def plain_value(value: Any) -> Any:
    """A value as JSON has it, with all its texts and names of fields made plain."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    if isinstance(value, dict):
        return {plain(name): plain_value(item) for name, item in value.items()}
    return value
