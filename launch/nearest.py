"""What someone may have meant: names near to one that does not exist."""

import difflib
from collections.abc import Sequence

_MOST = 3
_SHORTEST_START = 3


def nearest(word: str, names: Sequence[str]) -> list[str]:
    """Names of these initials (lr: learning-rate) or with this start, or else spelled alike."""
    word = word.lower().replace("_", "-")
    by_spelling = {name.lower().replace("_", "-"): name for name in names}
    found = [
        *(spelling for spelling in by_spelling if len(word) > 1 and _initials(spelling) == word),
        *(spelling for spelling in by_spelling if _share_a_start(word, spelling)),
    ] or difflib.get_close_matches(word, by_spelling, n=_MOST)
    return [by_spelling[spelling] for spelling in dict.fromkeys(found)][:_MOST]


def did_you_mean(word: str, names: Sequence[str], *, before: str = "") -> str | None:
    """The question, or None where nothing is near; `before` stands before every name."""
    found = [f"{before}{name}" for name in nearest(word, names)]
    return f"did you mean {' or '.join(found)}?" if found else None


def _initials(name: str) -> str:
    return "".join(part[0] for part in name.split("-") if part)


def _share_a_start(word: str, name: str) -> bool:
    shorter, longer = sorted((word, name), key=len)
    return len(shorter) >= _SHORTEST_START and longer.startswith(shorter)
