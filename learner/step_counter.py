"""The global count of agent steps, owned by the learner.

Steps are counted by the replay table's inserts, but a replay server that restarts counts from
zero, or from an older checkpoint. The counter turns that series into one that never goes back.
"""

import dataclasses


@dataclasses.dataclass
class StepCounter:
    """Adds up growth of an insert count that may restart."""

    total: int = 0
    last_inserts: int = 0

    def observe(self, inserts: int) -> int:
        """Takes the table's insert count as it is now; returns the global total."""
        if inserts >= self.last_inserts:
            self.total += inserts - self.last_inserts
        # A smaller count is a restarted server. What it restored was counted before it went down.
        self.last_inserts = inserts
        return self.total
