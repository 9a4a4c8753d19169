"""Files into tables."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.errors import BackendUnavailable, InvalidInput, check_path, first_line, short
from databanzhaf.tables.codes import lossy_codes

if TYPE_CHECKING:
    import pandas as pd

_DELIMITED = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": ","}
# Kinds of arrays that a table may have: truth values, numbers, texts, dates.
_PLAIN = "biufUSMm"
_READABLE = ".csv, .tsv, .parquet or .npz"


def read_table(
    path: str | Path,
    *,
    encoding: str = "utf-8",
    separator: str | None = None,
    decimal: str = ".",
    texts: Sequence[str] = (),
) -> pd.DataFrame:
    """A table from a CSV, TSV (both may be .gz), Parquet or .npz file (X and y; y becomes the
    column `y`).

    Columns in `texts` hold names and codes: they are read as they are written, and only an empty
    field is missing. Of the other columns ``attrs["codes"]`` names those that became numbers
    although some texts do not survive that, with an example: 007, +49, 1E2, or two that become one
    (1.1 and 1.10).
    """
    path = _existing(path)
    suffix = (
        path.with_suffix("").suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    )
    if suffix == ".npz":
        table = _read_npz(path)
    elif suffix in (".parquet", ".pq"):
        table = _read_parquet(path)
    elif suffix in _DELIMITED:
        table = _read_delimited(path, encoding, separator or _DELIMITED[suffix], decimal, texts)
    else:
        raise InvalidInput(
            f"a table must be a {_READABLE} file",
            got=f"`{path.name}`",
            remedy="Convert it, or rename it if it is one of them.",
        )
    table.columns = [name if isinstance(name, str) else str(name) for name in table.columns]
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise InvalidInput(
            f"`{path}` must name each column once",
            got=f"`{twice}` twice",
            remedy="Rename one of them.",
        )
    if not len(table):
        raise InvalidInput(
            f"`{path}` has no data rows",
            remedy="Give a table with one row for each training example.",
        )
    return table


def _existing(path: str | Path) -> Path:
    path = Path(path)
    check_path(path)
    try:
        if path.is_dir():
            raise InvalidInput(
                f"`{path}` is a folder, not a table", remedy=f"Give a {_READABLE} file."
            )
        if not path.is_file():
            raise InvalidInput(f"there is no file `{path}`", remedy="Check the path.")
        with path.open("rb"):
            return path
    except OSError as error:
        raise InvalidInput(
            f"`{str(path)[:200]}` cannot be opened ({error.strerror})",
            remedy="Check the path and its permissions.",
        ) from error


def file_digest(path: str | Path) -> str:
    with _existing(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_delimited(
    path: Path, encoding: str, separator: str, decimal: str, texts: Sequence[str]
) -> pd.DataFrame:
    import pandas as pd

    if path.stat().st_size == 0:
        raise InvalidInput(
            f"`{path}` is empty", remedy="Give a table with a header line and data rows."
        )
    separator = separator.replace("\\t", "\t")  # as it is written in a shell
    if len(separator) != 1:
        raise InvalidInput(
            "`separator` must be one character", got=short(separator), remedy="A tab is '\\t'."
        )
    try:
        # utf-8-sig also reads a file without the byte order mark that some spreadsheets write.
        how: dict[str, Any] = {
            "sep": separator,
            "encoding": "utf-8-sig" if encoding == "utf-8" else encoding,
            "decimal": decimal,
        }
        _check_header(path, separator, how)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            table: pd.DataFrame = pd.read_csv(path, **how, low_memory=False, index_col=False)
        if any(issubclass(each.category, pd.errors.ParserWarning) for each in seen):
            _check_last_field(path, len(table.columns), how)
        as_written = {**how, "index_col": False, "dtype": str, "keep_default_na": False}
        asked = [name for name in texts if name in table.columns]
        for name, column in pd.read_csv(path, **as_written, usecols=asked).items() if asked else ():
            table[name] = column.astype(object).where(column != "", None)
        numbers = [
            name for name in table.columns if name not in asked and table[name].dtype.kind in "iuf"
        ]
        table.attrs["codes"] = lossy_codes(path, as_written, table, numbers)
        for name in table.columns:
            if name not in asked and table[name].dtype.kind not in "biuf":
                table[name] = _dates(table[name])
        return table
    except InvalidInput:
        raise
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"`{path}` is not {encoding} text (byte {error.start}: "
            f"0x{error.object[error.start]:02x})",
            remedy="Pass its encoding, such as latin-1 or cp1252, or save it as UTF-8.",
        ) from error
    except LookupError as error:
        raise InvalidInput(
            "`encoding` must be one that Python knows",
            got=short(encoding),
            remedy="Try utf-8, latin-1 or cp1252.",
        ) from error
    except MemoryError:
        raise
    except Exception as error:  # whatever a parser or a decompressor makes of a broken file
        raise InvalidInput(
            f"`{path}` cannot be read as a table ({first_line(error)})",
            remedy="Check the separator and the quotes.",
        ) from error


def _dates(column: pd.Series[Any]) -> pd.Series[Any]:
    """Dates as such, if every cell is one as ISO 8601 writes it; else the texts as they are."""
    import pandas as pd

    known = column.dropna().astype(str)
    iso = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?"
    if not len(known) or not known.str.fullmatch(iso).all():
        return column
    try:
        return pd.to_datetime(column, format="ISO8601")
    except (ValueError, OverflowError):  # the 31st of June
        return column


def _check_header(path: Path, separator: str, how: dict[str, Any]) -> None:
    """Refuse what pandas would pass over: a name that stands twice (it renames the second), and
    another separator.
    """
    import pandas as pd

    header = (
        pd.read_csv(path, **how, header=None, nrows=1, dtype=str, na_filter=False).iloc[0].tolist()
    )
    twice = next(
        (name for place, name in enumerate(header) if name and name in header[:place]), None
    )
    if twice is not None:
        raise InvalidInput(
            f"`{path}` must name each column once",
            got=f"`{twice}` twice",
            remedy="Rename one of them.",
        )
    other = (
        next(
            (mark for mark in (";", "\t", "|", ",") if mark != separator and mark in header[0]),
            None,
        )
        if len(header) == 1
        else None
    )
    if other is not None:
        raise InvalidInput(
            f"`{path}` has only one column, `{header[0][:60]}`, when split at {separator!r}",
            remedy=f"Pass --separator {other!r}.",
        )


def _check_last_field(path: Path, columns: int, how: dict[str, Any]) -> None:
    """Rows have a field more than the header. A comma at the end of each line does that, and
    nothing is in it; anything else is a shift.
    """
    import pandas as pd

    try:
        extra = pd.read_csv(path, **how, header=None, skiprows=1, usecols=[columns], dtype=str)
    except ValueError:  # no row has it
        return
    if extra.notna().any(axis=None):
        raise InvalidInput(
            f"the rows of `{path}` must have as many fields as its header, {columns}; some have "
            "more",
            remedy="Name every column in the first line (R: write.csv with row.names = FALSE).",
        )


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        # Rows are known by their place; an index that was stored (shuffled, filtered, dates) would
        # be taken for it.
        return pd.read_parquet(path).reset_index(drop=True)
    except ImportError as error:
        raise BackendUnavailable.missing("reading Parquet needs", "pyarrow", "parquet") from error
    except MemoryError:
        raise
    except Exception as error:
        raise InvalidInput(
            f"`{path}` cannot be read as Parquet ({first_line(error)})",
            remedy="Write it again, or give a CSV.",
        ) from error


def _read_npz(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {
                name: file[name] for name in file.files if name in ("X", "y", "feature_names")
            }
    except MemoryError:
        raise
    except Exception as error:
        raise InvalidInput(
            f"`{path}` cannot be read as .npz ({first_line(error)})",
            remedy="Write it with np.savez(path, X=X, y=y), without objects.",
        ) from error
    X, y = arrays.get("X"), arrays.get("y")
    if (
        X is None
        or y is None
        or X.ndim < 2
        or y.shape != X.shape[:1]
        or X.dtype.kind not in _PLAIN
        or y.dtype.kind not in _PLAIN
    ):
        held = (
            ", ".join(f"{name} {array.dtype} {array.shape}" for name, array in arrays.items())
            or "none of them"
        )
        raise InvalidInput(
            "an .npz table must hold X (rows, columns) and y (rows,), numbers or texts",
            got=f"{held}",
            remedy="Write it with np.savez(path, X=X, y=y).",
        )
    if not X.size:
        raise InvalidInput(
            f"`{path}` has no data: X has shape {X.shape}",
            remedy="Give a table with one row for each training example.",
        )
    shape = X.shape[1:]
    X = X.reshape(len(X), -1)
    names = arrays.get("feature_names")
    named = names is not None and names.shape == (X.shape[1],)
    columns = [str(name) for name in names] if named else [f"x{i}" for i in range(X.shape[1])]  # type: ignore[union-attr]
    table = pd.DataFrame(X, columns=columns)
    table.insert(X.shape[1], "y", y, allow_duplicates=True)
    table.attrs["shape"] = shape
    return table
