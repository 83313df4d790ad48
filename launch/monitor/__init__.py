"""The monitor role: telemetry rows in; metrics.jsonl, TensorBoard and a terminal view out.

The last stage of the telemetry path, and a leaf: nothing depends on it to make progress. A row is
a flat dict with "time" (unix seconds), "role", "frames" (global) and the role's own keys.

    loop.py           the loop: drain rows, write every sink, update the view
    metrics_file.py   rows <-> metrics.jsonl
    events.py         rows -> TensorBoard event files
    snapshot.py       rows -> a typed snapshot of the run (pure)
    terminal.py       snapshot -> live terminal view, or plain lines for a log
    follow.py         metrics.jsonl as it grows -> rows, for a view in another process

Nothing here knows Reverb or Launchpad: rows arrive through a callable, stopping is a callable.
"""
