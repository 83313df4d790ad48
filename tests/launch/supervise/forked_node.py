"""What a fork does in tests: says what it is, and ends as its arguments say."""

import json
import os
import pathlib
import signal
import sys
import threading

import reverb


def main(argv: list[str]) -> None:
    """The process's part; its arguments are how it ends, and what that needs."""
    _, end, *arguments = argv
    if end == "insert":
        insert(*arguments)
    print(json.dumps(describe()), flush=True)
    if end == "raise":
        raise ValueError("as it was told")
    if end == "exit":
        os._exit(int(arguments[0]))
    threading.Event().wait()


def describe() -> dict[str, object]:
    """This process, as others see it."""
    own = pathlib.Path("/proc/self")
    return {
        "pid": os.getpid(),
        "name": (own / "comm").read_text().strip(),
        "session": os.getsid(0),
        "threads": len(list((own / "task").iterdir())),
        "child_signal_is_default": signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL,
        "network": os.readlink(own / "ns" / "net"),
        "files": [file for file in range(100) if (own / "fd" / str(file)).exists()],
        "environment": dict(os.environ),
        "imported": "tensorflow" in sys.modules,
    }


def insert(address: str) -> None:
    """Puts three items into a table, and ends."""
    client = reverb.Client(address)
    for number in range(3):
        client.insert([float(number)], {"table": 1.0})
    os._exit(0)
