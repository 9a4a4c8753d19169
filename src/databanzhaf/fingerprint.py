"""Python objects as text that is the same in every process: how the ledger knows functions, models
and metrics.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

# A text longer than this stands once; where its object comes again, its digest does.
_LONG = 200


def describe(thing: Any) -> str:
    """Numbers and strings as they are, functions by name and code (and those of the user's own that
    they call), arrays by digest, other objects by class and contents.
    """
    return _Describer().text(thing)


def captured(function: Any) -> tuple[str, ...]:
    """Names of the variables that a function, or one of the user's own that it calls, uses but does
    not own: closures, and globals that hold data.
    """
    inner = _unwrap(function)
    if code_of(inner) is None:
        return ()
    bound = () if hasattr(inner, "__code__") and not hasattr(inner, "__self__") else ("self",)
    found = [*bound, *_captured_by(inner)]
    for helper in _helpers(inner):
        for method in _functions(helper):
            found += [f"{name} in {method.__qualname__}" for name in _captured_by(method)]
    return tuple(dict.fromkeys(found))


def code_of(function: Any) -> CodeType | None:
    """The code of a function, a method, a partial or a callable object."""
    inner = _unwrap(function)
    for candidate in (inner, vars(type(inner)).get("__call__")):
        code = getattr(candidate, "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None


class _Describer:
    """One description; it remembers what it has described, so that every object ends."""

    def __init__(self) -> None:
        # Texts by identity; the objects are kept, so that no identity is given twice.
        self._known: dict[int, tuple[Any, str]] = {}
        self._inside: set[int] = set()

    def text(self, thing: Any) -> str:
        if isinstance(thing, np.generic):
            thing = thing.item()
        if thing is None or isinstance(thing, (bool, int, float, complex, str, bytes)):
            return repr(thing)
        if id(thing) in self._inside:
            return f"{_name(type(thing))} again"
        if id(thing) in self._known:
            text = self._known[id(thing)][1]
            return text if len(text) <= _LONG else f"again {_digest(text.encode())}"
        self._inside.add(id(thing))
        text = self._text(thing)
        self._inside.discard(id(thing))
        self._known[id(thing)] = thing, text
        return text

    def _text(self, thing: Any) -> str:
        if isinstance(thing, (list, tuple)):
            return "[" + ", ".join(map(self.text, thing)) + "]"
        if isinstance(thing, (set, frozenset)):
            return "{" + ", ".join(sorted(map(self.text, thing))) + "}"
        if isinstance(thing, dict):
            items = (f"{self.text(name)}: {self.text(value)}" for name, value in thing.items())
            return "{" + ", ".join(items) + "}"
        if isinstance(thing, np.ndarray) and thing.dtype.kind != "O":
            content = _digest(np.ascontiguousarray(thing).tobytes())
            return f"array {thing.dtype.str} {thing.shape} {content}"
        if isinstance(thing, type):
            return _class(thing)
        if isinstance(thing, ModuleType):
            return f"module {thing.__name__}"
        if isinstance(thing, functools.partial):
            return f"partial {' '.join(map(self.text, (thing.func, thing.args, thing.keywords)))}"
        if hasattr(thing, "detach") and hasattr(thing, "cpu"):
            return self.text(np.asarray(thing.detach().cpu()))
        if code_of(thing) is not None and hasattr(thing, "__code__"):
            called = sorted({self._helper(helper) for helper in _helpers(_unwrap(thing))})
            return " ".join([*self._function(thing)[:1], *called, *self._function(thing)[1:]])
        if callable(thing) and hasattr(thing, "__qualname__"):
            return _name(thing)
        return self._object(thing)

    def _function(self, function: Any) -> list[str]:
        """Name and code; then the defaults, if there are any."""
        code = code_of(function)
        assert code is not None
        defaults = [getattr(function, name, None) for name in ("__defaults__", "__kwdefaults__")]
        named = f"{_name(_unwrap(function))} {_digest(_flatten(code))}"
        return [named, *(self.text(part) for part in defaults if part)]

    def _helper(self, helper: Any) -> str:
        if isinstance(helper, type):
            return _class(helper)
        if isinstance(helper, functools.partial):
            return f"partial {self.text(helper.args)} {self.text(helper.keywords)}"
        if hasattr(helper, "__code__"):
            return " ".join(self._function(helper))
        return f"{_class(type(helper))} {self.text(vars(helper))}"

    def _object(self, thing: Any) -> str:
        if hasattr(thing, "iloc"):
            import pandas as pd

            content = pd.util.hash_pandas_object(thing).to_numpy().tobytes()
            return f"{_name(type(thing))} {thing.shape} {_digest(content)}"
        if hasattr(thing, "__dict__"):
            return f"{_class(type(thing))} {self.text(vars(thing))}"
        import joblib

        try:
            return f"{_name(type(thing))} {joblib.hash(thing)}"
        except Exception:  # what cannot be pickled (a lock, a generator) holds no settings
            return _name(type(thing))


def _helpers(function: Any) -> list[Any]:
    """The user's own functions, classes and callables that a function calls by name, and those that
    these call.
    """
    found: dict[int, Any] = {}
    waiting = [function]
    while waiting:
        for helper in _called_by(waiting.pop()):
            if helper is not function and id(helper) not in found:
                found[id(helper)] = helper
                waiting.append(helper)
    return list(found.values())


def _called_by(caller: Any) -> Iterator[Any]:
    """What a function, a class or a callable object names, as far as it is the user's own."""
    for method in _functions(caller):
        names, scope = _names(method.__code__), method.__globals__
        cells = [cell.cell_contents for cell in method.__closure__ or () if _is_filled(cell)]
        for candidate in (*(scope.get(name) for name in names), *cells):
            yield from _own_parts(candidate, names)
        for name in names:  # imported inside the function
            if name in sys.modules and _is_own(name):
                yield from _own_parts(sys.modules[name], names)


def _own_parts(thing: Any, names: list[str], depth: int = 2) -> Iterator[Any]:
    """A thing itself, what it wraps, or what is named of a module, as far as it is the
    user's own.
    """
    if isinstance(thing, ModuleType):
        for name in names if depth and _is_own(thing.__name__) else ():
            yield from _own_parts(getattr(thing, name, None), names, depth - 1)
    elif isinstance(thing, functools.partial):
        yield thing
        yield from _own_parts(thing.func, names, depth)
    elif hasattr(thing, "__wrapped__"):
        if isinstance(thing, FunctionType):
            yield thing
        yield from _own_parts(thing.__wrapped__, names, depth)
    elif isinstance(thing, (type, FunctionType)):
        if _is_own(thing.__module__):
            yield thing
    elif callable(thing) and _is_own(type(thing).__module__) and hasattr(thing, "__dict__"):
        yield thing


def _functions(thing: Any) -> Iterator[FunctionType]:
    """The Python functions of a function, a class, a callable object or a partial."""
    inner = _unwrap(thing)
    if isinstance(inner, MethodType):
        inner = inner.__func__
    if isinstance(inner, FunctionType):
        yield inner
        return
    kind = inner if isinstance(inner, type) else type(inner)
    for base in kind.__mro__:
        if _is_own(base.__module__):
            for _, part in sorted(vars(base).items()):
                yield from _methods(part)


def _methods(part: Any) -> Iterator[FunctionType]:
    """The functions behind an attribute of a class."""
    if isinstance(part, property):
        parts: tuple[Any, ...] = (part.fget, part.fset)
    elif isinstance(part, (staticmethod, classmethod)):
        parts = (part.__func__,)
    else:
        parts = (part, getattr(part, "__wrapped__", None))
    yield from (each for each in parts if isinstance(each, FunctionType))


def _captured_by(function: Any) -> list[str]:
    code = code_of(function)
    if code is None:
        return []
    scope = getattr(function, "__globals__", {})
    cells = zip(code.co_freevars, getattr(function, "__closure__", None) or (), strict=False)
    closed = [name for name, cell in cells if _is_filled(cell) and _is_data(cell.cell_contents)]
    return [*closed, *(name for name in _names(code) if name in scope and _is_data(scope[name]))]


def _is_data(thing: Any) -> bool:
    return not isinstance(thing, (ModuleType, type)) and not callable(thing)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_own(module: str | None) -> bool:
    """Whether a module is the user's own, which may change between two runs, and not an installed
    package's.
    """
    if module is None or module == "builtins":
        return False
    if module != "__main__" and module.split(".")[0] in {*sys.stdlib_module_names, "databanzhaf"}:
        return False
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return "site-packages" not in file and "dist-packages" not in file


def _class(kind: type) -> str:
    """A class by its name; one of the user's own, which may change between two runs, also by the
    code and the plain attributes of itself and of its bases.
    """
    if not _is_own(kind.__module__):
        return _name(kind)
    texts = []
    for base in kind.__mro__:
        if _is_own(base.__module__):
            parts = sorted(vars(base).items())
            codes = [_flatten(method.__code__) for _, part in parts for method in _methods(part)]
            plain = [f"{name}={part!r}" for name, part in parts if _is_plain(name, part)]
            texts.append(" ".join([_name(base), _digest(b"|".join(codes)), *plain]))
    return " of ".join(texts)


def _is_plain(name: str, part: Any) -> bool:
    return not name.startswith("__") and isinstance(part, (bool, int, float, complex, str, bytes))


def _name(thing: Any) -> str:
    if not hasattr(thing, "__qualname__"):
        thing = type(thing)
    return f"{thing.__module__}.{thing.__qualname__}"


def _unwrap(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _names(code: CodeType) -> list[str]:
    nested = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    inner = [name for constant in nested for name in _names(constant)]
    return list(dict.fromkeys([*code.co_names, *inner]))


def _flatten(code: CodeType) -> bytes:
    """The code and its constants, nested functions included, without file names and line
    numbers.
    """
    parts = [code.co_code, repr(code.co_names).encode(), repr(code.co_varnames).encode()]
    for constant in code.co_consts:
        parts.append(_flatten(constant) if isinstance(constant, CodeType) else _constant(constant))
    return b"\0".join(parts)


def _constant(constant: object) -> bytes:
    # A frozenset's order changes with the process (string hashing); its sorted members do not.
    sorted_members = sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant
    return repr(sorted_members).encode()
