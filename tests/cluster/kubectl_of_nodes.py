"""kubectl for a cluster of process nodes: `exec` and `logs` from their records, the rest is real.

`python kubectl_of_nodes.py REAL_KUBECTL NODES_FOLDER ARGS...`; both verbs need the server of a
kubelet, which process nodes do not have.
"""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def main(real: str, folder: str, *args: str) -> int:
    """The exit code."""
    verb = next((arg for arg in args if not arg.startswith("-")), "")
    pods = {}
    for path in pathlib.Path(folder).glob("*/pods.json"):
        pods |= json.loads(path.read_text())
    if verb == "exec":
        return _exec(pods, args)
    if verb == "logs":
        return _logs(pods, real, args)
    os.execv(real, [real, *args])


def _exec(pods: dict, args: tuple[str, ...]) -> int:
    pod = pods[args[args.index("exec") + 1]]
    command = [_translate(pod["mounts"], arg) for arg in args[args.index("--") + 1 :]]
    if command[0] == "vantage":
        command[:1] = [sys.executable, "-m", "launch"]
    environment = {**os.environ, "VANTAGE_POD": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _logs(pods: dict, real: str, args: tuple[str, ...]) -> int:
    before = args[: args.index("logs")]
    [selector] = [arg for arg in args if arg.startswith("--selector=")]
    [tail] = [int(arg.partition("=")[2]) for arg in args if arg.startswith("--tail=")]
    command = [real, *before, "get", "pods", selector, "--output=name"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    for name in listed:
        lines = pathlib.Path(pods[name.removeprefix("pod/")]["log"]).read_text().splitlines()
        print("\n".join(lines[-tail:]))
    return 0


def _translate(mounts: dict[str, str], text: str) -> str:
    for inside, outside in mounts.items():
        if text == inside or text.startswith(f"{inside}/"):
            return outside + text.removeprefix(inside)
    return text


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
