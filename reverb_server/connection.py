"""What Reverb raises when its server is away: gRPC failures, and its own time-outs."""

import reverb

SERVER_AWAY = (RuntimeError, reverb.ReverbError)
