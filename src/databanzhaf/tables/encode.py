"""Tables of mixed columns into numbers."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.errors import InvalidInput
from databanzhaf.protocols import FloatArray
from databanzhaf.tables.texts import FreeText, is_free_text

if TYPE_CHECKING:
    import pandas as pd

# Categories of one column that get a column of their own; rarer ones share one.
MOST_CATEGORIES = 30
# Squares of larger numbers have no place among floats.
LARGEST = 1e150


# Numbers that are written for people: 1,234.50 and $5.
_WITH_THOUSANDS = r"\s*[$€£]?\s*-?\d{1,3}(?:,\d{3})+(?:\.\d+)?\s*"
_MONEY = r"\s*[$€£]?\s*-?\d+(?:\.\d+)?\s*"
# Dates in another form than 2025-06-15.
_DAY, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:19|20)\d\d"
_OTHER_DATE = rf"\s*(?:{_DAY}[./-]{_DAY}[./-]{_YEAR}|{_YEAR}[./]{_DAY}[./]{_DAY})\s*"


class Encoder:
    """Mixed columns into float64: numbers scaled, missing ones set to the median; categories
    one-hot, missing ones as one more category; free text as up to 100 columns (see `FreeText`),
    missing ones as zeros.

    With `fills_gaps=False` missing numbers stay NaN. With `one_hot=False` numbers stay as they are,
    missing ones NaN, and categories become columns of pandas' `category` type, for a forest.
    Columns that are of that type already are never free text.
    Infinite numbers count as missing. Fitted once, on all training rows. `notes` says what a person
    should know about it, and `read_as` what the columns are. Columns that are the same in every row
    or number the rows are left out.
    """

    def __init__(
        self, table: pd.DataFrame, *, one_hot: bool = True, fills_gaps: bool = True
    ) -> None:
        self.notes: list[str] = []
        if not table.columns.is_unique:
            twice = table.columns[table.columns.duplicated()][0]
            raise InvalidInput(
                "a table must name each column once",
                got=f"`{twice}` twice",
                remedy="Rename one of them.",
            )
        dates = [name for name in table.columns if table[name].dtype.kind == "M"]
        gaps = int(table.isna().any().sum())
        given, table = table, _plain(table)
        numbers = [
            name
            for name in table.columns
            if table[name].dtype.kind in "biuf" and table[name].notna().any()
        ]
        texts = [name for name in table.columns if table[name].dtype.kind not in "biuf"]
        empty = [name for name in table.columns if name not in numbers and name not in texts]
        if empty:
            self.notes.append(f"{_listed(empty)} left out: no value in any row.")
        free = [
            name
            for name in texts
            if str(given[name].dtype) != "category" and is_free_text(given[name])
        ]
        disguised = [
            name
            for name in texts
            if table[name].str.fullmatch(_WITH_THOUSANDS).any()
            and table[name].str.fullmatch(rf"{_WITH_THOUSANDS}|{_MONEY}").mean() > 0.5
        ]
        if disguised:
            self.notes.append(
                f"{_listed(disguised)} read as text because of numbers such as "
                f"`{table[disguised[0]][table[disguised[0]].str.contains(',')].iloc[0]}`. Write "
                "them without separators of thousands and currency signs."
            )
        commas = [
            name
            for name in texts
            if name not in disguised and table[name].str.fullmatch(r"\s*-?\d+,\d+\s*").mean() > 0.5
        ]
        if commas:
            self.notes.append(
                f"{_listed(commas)} read as text because of decimal commas. To read numbers, pass "
                "--decimal ','."
            )
        dated = [
            name
            for name in texts
            if name not in free and table[name].str.fullmatch(_OTHER_DATE).mean() > 0.5
        ]
        if dated:
            first = table[dated[0]].dropna()
            example = first[first.str.fullmatch(_OTHER_DATE)].iloc[0]
            self.notes.append(
                f"{_listed(dated)} read as text because of dates such as `{example}`. Write them "
                "in the form 2025-06-15."
            )
        many = [
            name
            for name in texts
            if name not in {*commas, *free, *dated}
            and table[name].nunique() > max(MOST_CATEGORIES, len(table) // 2)
        ]
        if many:
            self.notes.append(
                f"{_listed(many)} {_verb('differ', many)} in most rows and "
                f"{'is used as a feature' if len(many) == 1 else 'are used as features'}. Pass a "
                "column that names the rows with --id; leave a column out with --drop."
            )
        if free:
            self.notes.append(
                f"{_listed(free)} read as free text: word and character n-grams. If it names the "
                "rows, pass it with --id; leave it out with --drop."
            )
        counters = [
            name
            for name in numbers
            if name not in dates and _counts_rows(name, table[name].to_numpy())
        ]
        constant = [name for name in table.columns if table[name].nunique(dropna=False) == 1]
        constant = [name for name in constant if name not in empty]
        if len(constant) + len(counters) < len(numbers) + len(texts):
            if counters:
                which = "it numbers" if len(counters) == 1 else "they number"
                self.notes.append(f"{_listed(counters)} left out: {which} the rows.")
            if constant:
                self.notes.append(f"{_listed(constant)} left out: the same in every row.")
            numbers = [name for name in numbers if name not in {*counters, *constant}]
            texts = [name for name in texts if name not in constant]
            free = [name for name in free if name not in constant]
        if not numbers and not texts:
            raise InvalidInput(
                "there is no column to learn from other than the target",
                remedy="Add features, or check the separator.",
            )
        categories = [name for name in texts if name not in free]
        self._columns, self._texts = [*numbers, *texts], texts
        self._plain_columns, self._categories = [*numbers, *categories], categories
        self._free = {name: FreeText(given[name]) for name in free}
        self.read_as = _read_as(
            [name for name in numbers if name not in dates],
            {name: table[name].nunique() for name in categories},
            [name for name in numbers if name in dates],
            [each.columns for each in self._free.values()],
            gaps,
        )
        self._one_hot, self._transformer = one_hot, None
        if one_hot and self._plain_columns:
            self._transformer = _one_hot(len(numbers), len(categories), fills_gaps)
            self._transformer.fit(self._numbered(table))

    @property
    def columns(self) -> list[Any]:
        """The columns that it reads, in its own order."""
        return list(self._columns)

    def _numbered(self, table: pd.DataFrame) -> pd.DataFrame:
        """The columns in their order, with texts as names, whatever theirs are: scikit-learn takes
        no others.
        """
        return table[self._plain_columns].set_axis(
            [f"column {number}" for number in range(len(self._plain_columns))], axis=1
        )

    def __call__(self, table: pd.DataFrame) -> Any:
        absent = [name for name in self._columns if name not in table.columns]
        if absent:
            raise InvalidInput(
                "the validation table must have the training table's columns",
                got=f"none called {', '.join(f'`{name}`' for name in absent[:5])}",
                remedy="Add what is missing.",
            )
        plain = _plain(table[self._columns])
        for name in self._columns:
            if table[name].isna().all():
                plain[name] = "(missing)" if name in self._texts else np.nan
        mixed = [
            name
            for name in self._columns
            if (plain[name].dtype.kind not in "biuf") != (name in self._texts)
        ]
        if mixed:
            raise InvalidInput(
                "the validation table's columns must be of the training table's kinds",
                got=f"numbers in one and texts in the other; see {_listed(mixed).lower()}",
                remedy="Check for texts among numbers.",
            )
        of_texts = {name: encode(table[name]) for name, encode in self._free.items()}
        if self._one_hot:
            return _beside([*self._scaled(plain), *of_texts.values()])
        others = plain[self._plain_columns]
        if not self._categories:
            return _beside([others.to_numpy(dtype=np.float64), *of_texts.values()])
        return _joined(others.astype(dict.fromkeys(self._categories, "category")), of_texts)

    def _scaled(self, plain: pd.DataFrame) -> list[Any]:
        """Numbers and categories as one array; none where all columns are free text."""
        if self._transformer is None:
            return []
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Found unknown categories"
            )  # they are encoded as the rare ones are
            found = self._transformer.transform(self._numbered(plain))
        return [np.asarray(found, dtype=np.float64)]


def _beside(parts: list[Any]) -> Any:
    """Arrays side by side; a single one keeps its order in memory, and so a model its last bits."""
    return parts[0] if len(parts) == 1 else np.hstack(parts)


def _joined(table: pd.DataFrame, of_texts: dict[Any, FloatArray]) -> pd.DataFrame:
    """A table with the columns of each free text after its own."""
    import pandas as pd

    parts = [
        pd.DataFrame(
            numbers,
            index=table.index,
            columns=[f"{name}: text {place}" for place in range(numbers.shape[1])],
        )
        for name, numbers in of_texts.items()
    ]
    return pd.concat([table, *parts], axis=1) if parts else table


def _counts_rows(name: Any, numbers: Any) -> bool:
    """Whether a column numbers the rows: in their order, or in any by a name that says so."""
    if len(numbers) < 3 or np.isnan(numbers).any():
        return False
    in_order = bool((np.diff(numbers) == 1).all())
    named = bool(re.fullmatch(r"(?i)unnamed: \d+|index|row|row_?(id|no|number)|id", str(name)))
    return in_order or (named and bool((np.diff(np.sort(numbers)) == 1).all()))


def _read_as(
    numbers: list[Any],
    categories: dict[Any, int],
    dates: list[Any],
    columns_of_texts: list[int],
    gaps: int,
) -> str:
    """How many columns of which kind, in one line."""
    most, texts = max(categories.values(), default=0), len(columns_of_texts)
    kinds = [
        (len(numbers), "of numbers"),
        (len(categories), f"of categories (up to {most:,} different ones)"),
        (len(dates), "of dates"),
        (texts, f"free text{'s' * (texts > 1)} as {sum(columns_of_texts)} numbers"),
    ]
    parts = ", ".join(f"{count} {kind}" for count, kind in kinds if count)
    return f"Columns: {parts}{f'; {gaps} with gaps' if gaps else ''}."


def _one_hot(n_numbers: int, n_texts: int, fills_gaps: bool) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_CATEGORIES, sparse_output=False
    )
    filled = [SimpleImputer(strategy="median")] if fills_gaps else []
    scaled = make_pipeline(*filled, StandardScaler())
    numbers = list(range(n_numbers))
    texts = list(range(n_numbers, n_numbers + n_texts))
    return ColumnTransformer(
        [("numbers", scaled, numbers), ("categories", one_hot, texts)], sparse_threshold=0.0
    )


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """Dates as days, truth values as numbers, infinities as missing, everything else that is no
    number as text.
    """
    import pandas as pd

    out = {}
    for name, column in table.items():
        if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "boolean":
            column = column.astype("boolean")  # truth values with gaps
        if pd.api.types.is_datetime64_any_dtype(column):
            seconds = column.dt.tz_localize(None) if getattr(column.dtype, "tz", None) else column
            out[name] = (seconds.astype("datetime64[s]").astype("int64") / 86400).where(
                column.notna()
            )
        elif pd.api.types.is_timedelta64_dtype(column):
            out[name] = column.dt.total_seconds() / 86400
        elif pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column):
            numbers = column.astype("float64").replace([np.inf, -np.inf], np.nan)
            out[name] = numbers.clip(-LARGEST, LARGEST)
        else:
            out[name] = column.astype(object).where(column.notna(), "(missing)").map(str)
    return pd.DataFrame(out, index=table.index)


def mostly_numbers(table: pd.DataFrame) -> list[str]:
    """A note for each column of texts that are numbers but for a few cells. Of the whole table: the
    odd cell may be held out.
    """
    import pandas as pd

    found = []
    for name in table.columns[table.columns.map(lambda name: table[name].dtype.kind not in "biuf")]:
        known = table[name].dropna()
        odd = known[pd.to_numeric(known, errors="coerce").isna()]
        if 0 < len(odd) <= 0.1 * len(known):
            found.append(
                f"Column `{name}` is read as text, since some of its cells are not numbers, such "
                f"as `{str(odd.iloc[0])[:40]}`."
            )
    return found


def _verb(verb: str, names: list[Any]) -> str:
    return f"{verb}s" if len(names) == 1 else verb


def _listed(names: list[Any]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:5])
    more = ", ..." if len(names) > 5 else ""
    return f"Column {shown}" if len(names) == 1 else f"Columns {shown}{more}"
