"""Where pictures go: an .mp4 or .gif file, or a window."""

import os
import pathlib
import time
import warnings
from typing import Any, Protocol

import imageio.v2 as imageio
import numpy as np

from launch.errors import InputError

SUFFIXES = (".mp4", ".gif")


class Sink(Protocol):
    """Takes pictures until it is closed; `show` is False once nobody looks any more."""

    def show(self, picture: np.ndarray) -> bool: ...

    def close(self) -> None: ...


class VideoFile:
    """Encodes as it goes; the file has its name once it can be played."""

    def __init__(self, path: pathlib.Path, *, fps: float):
        if path.suffix not in SUFFIXES:
            raise InputError(f"--out '{path}' must end in {' or '.join(SUFFIXES)}")
        self._path = path
        self._unfinished = path.with_name(f".{path.stem}-unfinished{path.suffix}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._unfinished.touch()
        except OSError as error:
            raise InputError(f"cannot write '{path}': {error.strerror}") from None
        self._writer: Any
        if path.suffix == ".gif":
            self._writer = imageio.get_writer(self._unfinished, duration=1000 / fps, loop=0)
        else:
            # Both sides of our pictures are even, which is all the usual players ask for.
            self._writer = imageio.get_writer(self._unfinished, fps=fps, macro_block_size=2)

    def show(self, picture: np.ndarray) -> bool:
        with warnings.catch_warnings():
            # The first picture starts ffmpeg. JAX warns of any fork; this one only runs a program.
            warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
            self._writer.append_data(picture)
        return True

    def close(self) -> None:
        self._writer.close()
        os.replace(self._unfinished, self._path)


class Window:
    """A window on this machine's display, at the speed of the game."""

    def __init__(self, title: str, *, fps: float):
        import matplotlib.pyplot as plt

        try:
            plt.switch_backend("TkAgg")
        except ImportError as error:
            raise InputError(f"no window can be opened ({error}); use --out x.mp4") from None
        self._plt, self._seconds = plt, 1.0 / fps
        self._figure = plt.figure(title, layout="none")
        self._image: Any = None
        self._due = time.monotonic()

    def show(self, picture: np.ndarray) -> bool:
        if self._image is None:
            axes = self._figure.add_axes((0, 0, 1, 1))
            axes.set_axis_off()
            self._image = axes.imshow(picture)
        self._image.set_data(picture)
        self._due += self._seconds
        # `pause` also lets the window handle its events.
        self._plt.pause(max(self._due - time.monotonic(), 0.001))
        return bool(self._plt.fignum_exists(self._figure.number))

    def close(self) -> None:
        self._plt.close(self._figure)


def make_sink(out: pathlib.Path | None, title: str, *, fps: float) -> Sink:
    """A file if one is named, else a window if there is a display."""
    if out is not None:
        return VideoFile(out, fps=fps)
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise InputError("there is no display to open a window on; write a file with --out x.mp4")
    return Window(title, fps=fps)
