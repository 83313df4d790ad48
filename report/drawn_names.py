"""Names in a drawing, as text: Matplotlib takes some of their characters for instructions."""

from collections.abc import Mapping
from types import MappingProxyType

# To draw under: a dollar sign in a name starts no formula.
NAMES_ARE_TEXT: Mapping[str, bool] = MappingProxyType({"text.parse_math": False})


def label(name: str) -> str:
    """A name for a legend, which leaves out those that begin with an underscore."""
    return f" {name}" if name.startswith("_") else name
