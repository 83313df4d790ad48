"""The folder of a search: it belongs to one start and one set of games."""

import json

from launch.errors import InputError
from launch.tune.plan import TuneRequest
from report.atomic_file import write_atomically
from report.json_file import read_json

TUNE_FILE = "tune.json"


def claim_folder(request: TuneRequest) -> None:
    """Makes the folder this search's own; refuses one that holds another, or something else."""
    _check(request)
    try:
        request.out.mkdir(parents=True, exist_ok=True)
        write_atomically(request.out / TUNE_FILE, json.dumps(_description(request)) + "\n")
    except OSError as error:
        raise InputError(f"cannot write '{request.out}': {error.strerror}") from None


def _check(request: TuneRequest) -> None:
    asked = _description(request)
    try:
        stored = read_json(request.out / TUNE_FILE)
    except FileNotFoundError:
        if request.out.exists() and (not request.out.is_dir() or any(request.out.iterdir())):
            raise InputError(
                f"'{request.out}' holds something else than a search; choose another --out"
            ) from None
        return
    except (OSError, ValueError) as error:
        raise InputError(f"{request.out / TUNE_FILE} cannot be read: {error}") from None
    for name, now in asked.items():
        before = stored.get(name) if isinstance(stored, dict) else None
        if before != now:
            raise InputError(
                f"'{request.out}' holds a search with {name}={_text(before)}, and this one has "
                f"{name}={_text(now)}; choose another --out"
            )


def _description(request: TuneRequest) -> dict[str, object]:
    """More seeds, frames and algorithms may be added later; these may not change."""
    return {"start": request.start, "games": sorted(request.games)}


def _text(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
