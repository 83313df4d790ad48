"""Frames per second, from the times and frame counts of rows."""

import collections

_RATE_WINDOW_SECONDS = 60.0
# A jump this long between two rows is a run that was stopped and resumed (or a clock that was set).
_RESUMED_AFTER_SECONDS = 600.0
_POINT_SECONDS = 0.5  # between two points of a rate, however many rows there are


class Progress:
    """Frames over the row time of one clock, and their mean rate over the last minute."""

    def __init__(self) -> None:
        self.frames = 0
        self._points: collections.deque[tuple[float, int]] = collections.deque()

    def add(self, time: float, frames: int) -> None:
        """Takes the frame count of a row."""
        self.frames = frames
        if self._points:
            last_time, last_frames = self._points[-1]
            # A step back is a learner that went back to its checkpoint: no rate spans that.
            if frames < last_frames or abs(time - last_time) > _RESUMED_AFTER_SECONDS:
                self._points.clear()
            elif time <= last_time:
                self._points[-1] = (last_time, frames)
                return
            elif len(self._points) > 1 and time - self._points[-2][0] < _POINT_SECONDS:
                self._points[-1] = (time, frames)
                return
        self._points.append((time, frames))
        # Two points always stay, however rare the rows are.
        while len(self._points) > 2 and self._points[1][0] <= time - _RATE_WINDOW_SECONDS:
            self._points.popleft()

    def begin_rate(self) -> None:
        """Frames are counted on, their rate is that from now on."""
        self._points.clear()

    def frames_per_second(self) -> float | None:
        """The mean rate; None where one count is all there is."""
        if len(self._points) < 2:
            return None
        (first_time, first_frames), (last_time, last_frames) = self._points[0], self._points[-1]
        return (last_frames - first_frames) / (last_time - first_time)
