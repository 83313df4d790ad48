"""The data plane: Reverb tables, and the clients that write to and read from them.

Three tables on one server: `replay` (experience), `params` (the newest parameters for acting) and
`telemetry` (rows for the monitor). Only this package and `launch` import Reverb.
"""
