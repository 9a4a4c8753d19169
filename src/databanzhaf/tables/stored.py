"""Parquet and .npz files with some labels changed and some rows removed."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from databanzhaf.errors import InvalidInput, first_line, short
from databanzhaf.protocols import BoolArray, IntArray


def changed_parquet(
    path: Path, target: str, source: IntArray, new: Sequence[str], kept: BoolArray
) -> bytes:
    """The file with the label of row `source[row]` in each row, and with the kept rows only.

    Sources from the number of rows on are the labels in `new`, which no row has. Types, metadata,
    compression and the size of row groups stay.
    """
    import pyarrow as pa
    from pyarrow import parquet as pq

    with pq.ParquetFile(path) as file:
        table, facts = file.read(), file.metadata
    place = table.schema.get_field_index(target)
    if place < 0:
        raise InvalidInput(
            f"the target `{target}` must be a column of the Parquet file",
            got="an index or a folder's name",
            remedy="Store it as a column.",
        )
    field, schema = table.schema.field(place), table.schema
    try:
        extra = _arrow(new, field.type)
        pool = pa.chunked_array([*table.column(place).chunks, extra], type=field.type)
        column = pool.take(pa.array(source))
        table = table.set_column(place, field, column).filter(pa.array(kept))
    except pa.ArrowException as error:
        raise _wrong_kind(str(field.type), new, error) from error
    groups = [facts.row_group(number) for number in range(facts.num_row_groups)]
    names = {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}
    chunks = [groups[0].column(number) for number in range(groups[0].num_columns)]
    buffer = io.BytesIO()
    pq.write_table(
        table.replace_schema_metadata(schema.metadata),
        buffer,
        compression={
            each.path_in_schema: names.get(each.compression, each.compression) for each in chunks
        },
        row_group_size=max(group.num_rows for group in groups),
    )
    return buffer.getvalue()


def _arrow(new: Sequence[str], kind: Any) -> Any:
    """The labels as an array of the column's type."""
    import pyarrow as pa

    if not new:
        return pa.array([], kind)
    if not pa.types.is_dictionary(kind):
        return pa.array(list(new), pa.string()).cast(kind)
    values = pa.array(list(new), pa.string()).cast(kind.value_type)
    places = pa.array(range(len(new)), kind.index_type)
    return pa.DictionaryArray.from_arrays(places, values, ordered=kind.ordered)


def changed_npz(path: Path, source: IntArray, new: Sequence[str], kept: BoolArray) -> bytes:
    """The same for an .npz: `y` changes, rows leave `X` and `y`, and other arrays keep their
    bytes.
    """
    with np.load(path, allow_pickle=False) as file:
        y = file["y"]
        pool = np.concatenate([y, _numpy(new, y.dtype)]) if new else y
        arrays = {"y": pool[source][kept]}
        if y.dtype.kind not in "US":  # texts may need more room, all else keeps its type
            arrays["y"] = arrays["y"].astype(y.dtype)
        if not kept.all():
            arrays["X"] = file["X"][kept]
    buffer = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(buffer, "w") as made:
        for each in old.infolist():
            name = each.filename.removesuffix(".npy")
            content = _npy(arrays[name]) if name in arrays else old.read(each)
            entry = zipfile.ZipInfo(each.filename, each.date_time)
            entry.external_attr = each.external_attr
            made.writestr(entry, content, each.compress_type)
    return buffer.getvalue()


def lined_up(path: Path) -> list[str]:
    """Arrays of an .npz that have an entry for each row, and of which the reader knows nothing."""
    with np.load(path, allow_pickle=False) as file:
        rows, found = len(file["y"]), []
        for name in file.files:
            try:
                if name not in ("X", "y", "feature_names") and file[name].shape[:1] == (rows,):
                    found.append(name)
            except ValueError:  # of objects, which only pickle could read
                continue
    return found


def _numpy(new: Sequence[str], kind: np.dtype[Any]) -> Any:
    """The labels as an array of the target's type."""
    try:
        if kind.kind == "b":
            return np.array([{"true": True, "false": False}[text.lower()] for text in new])
        if kind.kind in "iu":
            return np.array([int(text) for text in new], dtype=kind)
        if kind.kind == "f":
            return np.array([float(text) for text in new], dtype=kind)
        if kind.kind == "S":
            return np.array([text.encode() for text in new])
        return np.array(list(new), dtype="U" if kind.kind == "U" else kind)
    except (KeyError, ValueError, OverflowError) as error:
        raise _wrong_kind(str(kind), new, error) from error


def _wrong_kind(kind: str, new: Sequence[str], error: Exception) -> InvalidInput:
    return InvalidInput(
        f"new labels must be of the target's type, {kind}",
        got=f"{', '.join(map(short, new[:3]))} ({first_line(error)})",
        remedy="Decide a label of that type.",
    )


def _npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()
