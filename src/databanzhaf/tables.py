"""Files into tables, and tables of mixed columns into numbers."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf import chance
from databanzhaf.errors import BackendUnavailable, InvalidInput, check_path, first_line, short
from databanzhaf.types import BoolArray

if TYPE_CHECKING:
    import pandas as pd

# Categories of one column that get a column of their own; rarer ones share one.
MOST_CATEGORIES = 30
_DELIMITED = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": ","}
# Cells of a text file that are held as texts at a time.
_TEXT_CELLS = 1 << 21
# Kinds of arrays that a table may have: truth values, numbers, texts, dates.
_PLAIN = "biufUSMm"
_READABLE = ".csv, .tsv, .parquet or .npz"


def read_table(
    path: str | Path, *, encoding: str = "utf-8", separator: str | None = None, decimal: str = ".", texts: Sequence[str] = ()
) -> pd.DataFrame:
    """A table from a CSV, TSV (both may be .gz), Parquet or .npz file (X and y; y becomes the column `y`).

    Columns in `texts` hold names and codes: they are read as they are written, and only an empty field is missing. Of the other columns
    ``attrs["codes"]`` names those that became numbers although some texts do not survive that, with an example: 007, +49, 1E2, or two
    that become one (1.1 and 1.10).
    """
    path = _existing(path)
    suffix = path.with_suffix("").suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    if suffix == ".npz":
        table = _read_npz(path)
    elif suffix in (".parquet", ".pq"):
        table = _read_parquet(path)
    elif suffix in _DELIMITED:
        table = _read_delimited(path, encoding, separator or _DELIMITED[suffix], decimal, texts)
    else:
        raise InvalidInput(f"a table must be a {_READABLE} file; got `{path.name}`. Convert it, or rename it if it is one of them.")
    table.columns = [name if isinstance(name, str) else str(name) for name in table.columns]
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise InvalidInput(f"`{path}` must name each column once; got `{twice}` twice. Rename one of them.")
    if not len(table):
        raise InvalidInput(f"`{path}` has no data rows. Give a table with one row for each training example.")
    return table


def _existing(path: str | Path) -> Path:
    path = Path(path)
    check_path(path)
    try:
        if path.is_dir():
            raise InvalidInput(f"`{path}` is a folder, not a table. Give a {_READABLE} file.")
        if not path.is_file():
            raise InvalidInput(f"there is no file `{path}`. Check the path.")
        with path.open("rb"):
            return path
    except OSError as error:
        raise InvalidInput(f"`{str(path)[:200]}` cannot be opened ({error.strerror}). Check the path and its permissions.") from error


def file_digest(path: str | Path) -> str:
    with _existing(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_delimited(path: Path, encoding: str, separator: str, decimal: str, texts: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    if path.stat().st_size == 0:
        raise InvalidInput(f"`{path}` is empty. Give a table with a header line and data rows.")
    separator = separator.replace("\\t", "\t")  # as it is written in a shell
    if len(separator) != 1:
        raise InvalidInput(f"`separator` must be one character; got {short(separator)}. A tab is '\\t'.")
    try:
        # utf-8-sig also reads a file without the byte order mark that some spreadsheets write.
        how: dict[str, Any] = {"sep": separator, "encoding": "utf-8-sig" if encoding == "utf-8" else encoding, "decimal": decimal}
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
        numbers = [name for name in table.columns if name not in asked and table[name].dtype.kind in "iuf"]
        table.attrs["codes"] = _codes(path, as_written, table, numbers)
        return table
    except InvalidInput:
        raise
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"`{path}` is not {encoding} text (byte {error.start}: 0x{error.object[error.start]:02x}). "
            "Pass its encoding, such as latin-1 or cp1252, or save it as UTF-8."
        ) from error
    except LookupError as error:
        raise InvalidInput(f"`encoding` must be one that Python knows; got {short(encoding)}. Try utf-8, latin-1 or cp1252.") from error
    except MemoryError:
        raise
    except Exception as error:  # whatever a parser or a decompressor makes of a broken file
        raise InvalidInput(f"`{path}` cannot be read as a table ({first_line(error)}). Check the separator and the quotes.") from error


def _check_header(path: Path, separator: str, how: dict[str, Any]) -> None:
    """Refuse what pandas would pass over: a name that stands twice (it renames the second), and another separator."""
    import pandas as pd

    header = pd.read_csv(path, **how, header=None, nrows=1, dtype=str, na_filter=False).iloc[0].tolist()
    twice = next((name for place, name in enumerate(header) if name and name in header[:place]), None)
    if twice is not None:
        raise InvalidInput(f"`{path}` must name each column once; got `{twice}` twice. Rename one of them.")
    other = next((mark for mark in (";", "\t", "|", ",") if mark != separator and mark in header[0]), None) if len(header) == 1 else None
    if other is not None:
        raise InvalidInput(f"`{path}` has one column, `{header[0][:60]}`, by the separator {separator!r}. Pass --separator {other!r}.")


def _codes(path: Path, as_written: dict[str, Any], table: pd.DataFrame, numbers: list[str]) -> dict[str, str]:
    """Columns of numbers whose texts do not survive the way to a number and back, each with an example."""
    import pandas as pd

    found: dict[str, str] = {}
    # Only of columns that may hold codes: reading 30 columns of 200,000 measurements takes 1 s longer than without, all texts took 22 s.
    asked = [name for name in numbers if _may_be_codes(table[name].to_numpy())]
    if not asked:
        return found
    texts: dict[str, list[Any]] = {name: [] for name in asked}
    for part in pd.read_csv(path, **as_written, usecols=asked, chunksize=max(1, _TEXT_CELLS // len(asked))):
        for name in asked:
            texts[name].append(part[name].unique())
    for name in asked:
        different = pd.Series(np.concatenate(texts[name])).str.strip().drop_duplicates()
        values = pd.to_numeric(different.str.replace(as_written["decimal"], ".", regex=False), errors="coerce")
        different, values = different[values.notna()], values[values.notna()]
        odd = different[different.str.match(r"\+|-?0\d|\d+[eE]\d+$")]
        again = values[values.duplicated()]
        if len(odd):
            found[name] = f"`{odd.iloc[0]}`"
        elif len(again):
            found[name] = " and ".join(f"`{text}`" for text in different[values == again.iloc[0]].iloc[:2]) + ", one number"
    return found


def _may_be_codes(numbers: Any) -> bool:
    """Whole numbers and short decimals may be codes (1.10, 1E2, 007); measurements have more digits."""
    if numbers.dtype.kind in "iu":
        return True
    scaled = numbers[np.isfinite(numbers)] * 1e4
    return bool((np.abs(scaled - np.round(scaled)) <= 1e-9 * np.abs(scaled)).mean() > 0.9) if scaled.size else False


def _check_last_field(path: Path, columns: int, how: dict[str, Any]) -> None:
    """Rows have a field more than the header. A comma at the end of each line does that, and nothing is in it; anything else is a shift."""
    import pandas as pd

    try:
        extra = pd.read_csv(path, **how, header=None, skiprows=1, usecols=[columns], dtype=str)
    except ValueError:  # no row has it
        return
    if extra.notna().any(axis=None):
        raise InvalidInput(
            f"the rows of `{path}` must have as many fields as its header, {columns}; some have more. "
            "Name every column in the first line (R: write.csv with row.names = FALSE)."
        )


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        # Rows are known by their place; an index that was stored (shuffled, filtered, dates) would be taken for it.
        return pd.read_parquet(path).reset_index(drop=True)
    except ImportError as error:
        raise BackendUnavailable.missing("reading Parquet needs", "pyarrow", "parquet") from error
    except MemoryError:
        raise
    except Exception as error:
        raise InvalidInput(f"`{path}` cannot be read as Parquet ({first_line(error)}). Write it again, or give a CSV.") from error


def _read_npz(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files if name in ("X", "y", "feature_names")}
    except MemoryError:
        raise
    except Exception as error:
        raise InvalidInput(
            f"`{path}` cannot be read as .npz ({first_line(error)}). Write it with np.savez(path, X=X, y=y), without objects."
        ) from error
    X, y = arrays.get("X"), arrays.get("y")
    if X is None or y is None or X.ndim < 2 or y.shape != X.shape[:1] or X.dtype.kind not in _PLAIN or y.dtype.kind not in _PLAIN:
        held = ", ".join(f"{name} {array.dtype} {array.shape}" for name, array in arrays.items()) or "none of them"
        raise InvalidInput(
            f"an .npz table must hold X (rows, columns) and y (rows,), numbers or texts; got {held}. "
            "Write it with np.savez(path, X=X, y=y)."
        )
    if not X.size:
        raise InvalidInput(f"`{path}` has no data: X has shape {X.shape}. Give a table with one row for each training example.")
    shape = X.shape[1:]
    X = X.reshape(len(X), -1)
    names = arrays.get("feature_names")
    named = names is not None and names.shape == (X.shape[1],)
    columns = [str(name) for name in names] if named else [f"x{i}" for i in range(X.shape[1])]  # type: ignore[union-attr]
    table = pd.DataFrame(X, columns=columns)
    table.insert(X.shape[1], "y", y, allow_duplicates=True)
    table.attrs["shape"] = shape
    return table


def held_out(labels: Any, fraction: float, seed: int, *, by_class: bool) -> BoolArray:
    """Which rows to keep for validation: a share of each class, at least one row of it for training; a pure function of its arguments."""
    n = len(labels)
    luck = chance.uniform(chance.keys(chance.check_seed(seed), chance.SPLIT, np.arange(n)), 1)[:, 0]
    classes = np.unique(labels, return_inverse=True)[1] if by_class else np.zeros(n, dtype=np.int64)
    chosen = np.zeros(n, dtype=np.bool_)
    for number in range(classes.max() + 1):
        rows = np.flatnonzero(classes == number)
        share = min(round(fraction * len(rows)), len(rows) - 1)
        chosen[rows[np.argsort(luck[rows], kind="stable")[:share]]] = True
    return chosen


class Encoder:
    """Mixed columns into float64: numbers scaled, missing ones set to the median; categories one-hot, missing ones as one more category.

    Fitted once, on all training rows. `notes` says what a person should know about it.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        self.notes: list[str] = []
        if not table.columns.is_unique:
            twice = table.columns[table.columns.duplicated()][0]
            raise InvalidInput(f"a table must name each column once; got `{twice}` twice. Rename one of them.")
        table = _plain(table)
        numbers = [name for name in table.columns if table[name].dtype.kind in "biuf" and table[name].notna().any()]
        texts = [name for name in table.columns if table[name].dtype.kind not in "biuf"]
        empty = [name for name in table.columns if name not in numbers and name not in texts]
        if empty:
            self.notes.append(f"{_listed(empty)} left out: no value at all.")
        commas = [name for name in texts if table[name].str.fullmatch(r"\s*-?\d+,\d+\s*").mean() > 0.5]
        if commas:
            self.notes.append(f"{_listed(commas)} with decimal commas, taken for texts: read them as numbers with --decimal ','.")
        many = [name for name in texts if name not in commas and table[name].nunique() > max(MOST_CATEGORIES, len(table) // 2)]
        if many:
            self.notes.append(
                f"{_listed(many)} with a different text in most rows: if that is a name or free text, leave it out with --drop."
            )
        counters = [name for name in numbers if len(table) > 2 and (np.diff(table[name].to_numpy()) == 1).all()]
        if counters:
            self.notes.append(
                f"{_listed(counters)} counting the rows: if that is no feature, leave it out with --drop (or name it by --id)."
            )
        if not numbers and not texts:
            raise InvalidInput("there is no column to learn from besides the target. Add features, or check the separator.")
        one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_CATEGORIES, sparse_output=False)
        self._transformer = ColumnTransformer(
            [
                ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), list(range(len(numbers)))),
                ("categories", one_hot, list(range(len(numbers), len(numbers) + len(texts)))),
            ],
            sparse_threshold=0.0,
        )
        self._columns = [*numbers, *texts]
        self._transformer.fit(self._numbered(table))

    def _numbered(self, table: pd.DataFrame) -> pd.DataFrame:
        """The columns in their order, with texts as names, whatever theirs are: scikit-learn takes no others."""
        return table[self._columns].set_axis([f"column {number}" for number in range(len(self._columns))], axis=1)

    def __call__(self, table: pd.DataFrame) -> Any:
        absent = [name for name in self._columns if name not in table.columns]
        if absent:
            raise InvalidInput(f"the validation table must have the training table's columns; it lacks {_listed(absent)}. Add them.")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Found unknown categories")  # they are encoded as the rare ones are
            try:
                return np.asarray(self._transformer.transform(self._numbered(_plain(table[self._columns]))), dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise InvalidInput(
                    f"the validation table's columns must be of the training table's kinds; {str(error).splitlines()[0]}. "
                    "Check for texts among numbers."
                ) from error


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """Dates as days, truth values as numbers, infinities as missing, everything else that is no number as text."""
    import pandas as pd

    out = {}
    for name, column in table.items():
        if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "boolean":
            column = column.astype("boolean")  # truth values with gaps
        if pd.api.types.is_datetime64_any_dtype(column):
            seconds = column.dt.tz_localize(None) if getattr(column.dtype, "tz", None) else column
            out[name] = (seconds.astype("datetime64[s]").astype("int64") / 86400).where(column.notna())
        elif pd.api.types.is_timedelta64_dtype(column):
            out[name] = column.dt.total_seconds() / 86400
        elif pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column):
            out[name] = column.astype("float64").replace([np.inf, -np.inf], np.nan)
        else:
            out[name] = column.astype(object).where(column.notna(), "(missing)").map(str)
    return pd.DataFrame(out, index=table.index)


def _listed(names: list[Any]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:5])
    return f"column {shown}" if len(names) == 1 else f"columns {shown}{', ...' if len(names) > 5 else ''}"
