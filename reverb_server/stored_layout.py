"""What the items of a replay checkpoint look like, before a server restores it.

A server takes over whatever a checkpoint holds, and the table's signature with it. Items of an
earlier version, or of other settings, could not be sampled.
"""

import pathlib

import tensorflow as tf
from reverb.cc.checkpointing import checkpoint_pb2

from reverb_server import tables

_TABLES_FILE = "tables.tfrecord"


def fits(checkpoint: pathlib.Path, layout: tables.ItemLayout) -> bool:
    """Whether the `replay` table of a whole checkpoint holds items of this layout."""
    records = tf.data.TFRecordDataset(str(checkpoint / _TABLES_FILE), compression_type="ZLIB")
    for record in records.as_numpy_iterator():
        table = checkpoint_pb2.PriorityTableCheckpoint.FromString(record)
        if table.table_name == tables.REPLAY:
            return _shapes(table.signature) == {
                name: (spec.shape.as_list(), spec.dtype.as_datatype_enum)
                for name, spec in layout.signature().items()
            }
    return False


def _shapes(signature: object) -> dict[str, tuple[list[int], int]]:
    specs = {
        name: value.tensor_spec_value
        for name, value in signature.dict_value.fields.items()  # type: ignore[attr-defined]
    }
    return {
        name: ([dim.size for dim in spec.shape.dim], spec.dtype) for name, spec in specs.items()
    }
