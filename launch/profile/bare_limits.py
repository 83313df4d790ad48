"""What stages are held against: Reverb and the emulator with nothing of ours around them."""

from collections.abc import Callable

import ale_py
import reverb

from actors.n_step import Row
from launch.config import Config
from launch.nodes.tables import item_layout
from reverb_server import tables
from reverb_server.sampler import make_dataset

_SAMPLE_SECONDS = 30.0
_CLOSE_MS = 30_000


class BareWriter:
    """The same bytes into the same table, without any bookkeeping of ours."""

    def __init__(self, config: Config, address: str, row: Row):
        self._row = {"frame": row.frame, "step": tables.pack_step(row)}
        self._layout = item_layout(config)
        keep = self._layout.rows + 16
        self._writer = reverb.Client(address).trajectory_writer(keep, validate_items=False)
        for _ in range(self._layout.rows):
            self._writer.append(self._row)
        self._history = self._writer.history  # the same growing columns every time
        self._steps = 0

    def __call__(self) -> None:
        """Appends one frame, and inserts an item when its steps are there."""
        self._writer.append(self._row)
        self._steps += 1
        if self._steps % self._layout.transitions == 0:
            newest = slice(-self._layout.rows, None)
            item = tables.Item(
                frames=self._history["frame"][newest], steps=self._history["step"][newest]
            )
            self._writer.create_item(tables.REPLAY, 1.0, item._asdict())
        self._writer.flush(20)

    def close(self) -> None:
        """Ends the stream, once the server has all of it.

        Reverb may wait for ever when it closes a stream with an item whose rows are not yet sent.
        """
        try:
            self._writer.flush(timeout_ms=_CLOSE_MS)
        finally:
            self._writer.close()


def bare_draw(config: Config, address: str) -> Callable[[], object]:
    """Draws batches by Reverb's dataset alone, and leaves them in TensorFlow."""
    batches = iter(
        make_dataset(
            address,
            item_layout(config),
            batch_size=config.sampled_items,
            timeout_seconds=_SAMPLE_SECONDS,
        )
    )
    return lambda: next(batches)


def bare_emulator(config: Config) -> ale_py.ALEInterface:
    """The game without frame skip, pooling or stacks."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    rom = ale_py.roms.get_rom_path(config.environment.game)
    assert rom is not None  # the game's name was checked
    ale.loadROM(rom)
    ale.reset_game()
    return ale
