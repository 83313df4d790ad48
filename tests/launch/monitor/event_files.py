"""TensorBoard event files as TensorBoard reads them."""

from pathlib import Path


def read_events(directory: Path) -> dict[str, list[tuple[int, float]]]:
    """All scalars of a run directory as TensorBoard itself reads them: tag -> [(step, value)]."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util import tensor_util

    accumulator = EventAccumulator(str(directory), size_guidance={"tensors": 0})
    accumulator.Reload()
    return {
        tag: [
            (event.step, float(tensor_util.make_ndarray(event.tensor_proto)))
            for event in accumulator.Tensors(tag)
        ]
        for tag in accumulator.Tags()["tensors"]
    }
