"""What a run reports, written and shown: rows in; metrics.jsonl, TensorBoard and a view out.

The last stage of the telemetry path, and a leaf: nothing depends on it to make progress. A row is
a flat dict with "time" (unix seconds), "role", "frames" (global) and the role's own keys.

    loop.py        the monitor's loop: drain rows, write every sink (`report.metrics_file` is one)
    events.py      rows -> TensorBoard event files
    follow.py      metrics.jsonl as it grows -> rows, for a view in another process
    snapshot.py    rows -> a typed snapshot of the run (pure)
    rate.py        how fast frames come, of the rows of a clock
    run_phase.py   what the run as a whole is doing, for whoever knows more than its rows
    display.py     the file and the phase, shown by a view as the run goes on
    view.py        a view for this terminal: live_view.py draws a snapshot in place,
                   plain_view.py prints lines for a log; units.py is how both write numbers

Nothing here knows Reverb or Launchpad: rows arrive through a callable, stopping is a callable.
"""
