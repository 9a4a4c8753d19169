"""Python objects as text that is the same in every process: how the ledger knows functions, models and metrics."""

from __future__ import annotations

import functools
import hashlib
from types import CodeType, ModuleType
from typing import Any

import numpy as np


def describe(thing: Any, _inside: tuple[int, ...] = ()) -> str:
    """Numbers and strings as they are, functions by name and code, arrays by digest, other objects by class and contents.

    `_inside` are the objects further up, so that one which holds itself comes to an end.
    """

    def again(part: Any) -> str:
        return describe(part, _inside)

    if isinstance(thing, np.generic):
        thing = thing.item()
    if thing is None or isinstance(thing, (bool, int, float, complex, str, bytes)):
        return repr(thing)
    if isinstance(thing, (list, tuple)):
        return "[" + ", ".join(map(again, thing)) + "]"
    if isinstance(thing, (set, frozenset)):
        return "{" + ", ".join(sorted(map(again, thing))) + "}"
    if isinstance(thing, dict):
        return "{" + ", ".join(f"{again(name)}: {again(value)}" for name, value in thing.items()) + "}"
    if isinstance(thing, np.ndarray) and thing.dtype.kind != "O":
        return f"array {thing.dtype.str} {thing.shape} {_digest(np.ascontiguousarray(thing).tobytes())}"
    if isinstance(thing, type):
        return _class(thing)
    if isinstance(thing, functools.partial):
        return f"partial {again(thing.func)} {again(thing.args)} {again(thing.keywords)}"
    if hasattr(thing, "detach") and hasattr(thing, "cpu"):
        return again(np.asarray(thing.detach().cpu()))
    code = code_of(thing)
    if code is not None and hasattr(thing, "__code__"):
        defaults = (getattr(thing, "__defaults__", None), getattr(thing, "__kwdefaults__", None))
        more = "".join(f" {again(part)}" for part in defaults if part)
        called = "".join(f" {helper}" for helper in _helpers(thing))
        return f"{_name(_unwrap(thing))} {_digest(_flatten(code))}{called}{more}"
    if callable(thing) and hasattr(thing, "__qualname__"):
        return _name(thing)
    if hasattr(thing, "__dict__"):
        if id(thing) in _inside:
            return f"{_name(type(thing))} again"
        return f"{_class(type(thing))} {describe(vars(thing), (*_inside, id(thing)))}"
    import joblib

    return f"{_name(type(thing))} {joblib.hash(thing)}"


def captured(function: Any) -> tuple[str, ...]:
    """Names of the variables that a function uses but does not own: closures, and globals that hold data."""
    inner = _unwrap(function)
    code = code_of(inner)
    if code is None:
        return ()
    scope = getattr(inner, "__globals__", {})
    data = [
        name for name in _names(code) if name in scope and not isinstance(scope[name], (ModuleType, type)) and not callable(scope[name])
    ]
    bound = () if hasattr(inner, "__code__") and not hasattr(inner, "__self__") else ("self",)
    return (*bound, *code.co_freevars, *data)


def _helpers(function: Any) -> list[str]:
    """The user's own functions and classes that a function calls by name, and those that these call: name and code of each."""
    found: dict[str, str] = {}
    waiting = [_unwrap(function)]
    while waiting:
        caller = waiting.pop()
        code, scope = code_of(caller), getattr(caller, "__globals__", {})
        names = [] if code is None else _names(code)
        modules = [scope[name] for name in names if isinstance(scope.get(name), ModuleType) and _is_own(scope[name].__name__)]
        for name in names:
            # A name of the module itself, or an attribute of a module that it imports.
            for helper in (scope.get(name), *(getattr(module, name, None) for module in modules)):
                inner = _unwrap(helper)
                if inner is _unwrap(function) or not hasattr(inner, "__qualname__") or not _is_own(getattr(inner, "__module__", None)):
                    continue
                if isinstance(inner, type):
                    found[_name(inner)] = _class(inner)
                elif hasattr(inner, "__code__") and _name(inner) not in found:
                    found[_name(inner)] = f"{_name(inner)} {_digest(_flatten(inner.__code__))}"
                    waiting.append(inner)
    return [found[name] for name in sorted(found)]


def _is_own(module: str | None) -> bool:
    """Whether a module is the user's own, which may change between two runs, and not an installed package's."""
    import sys

    if module is None or module == "builtins" or module.split(".")[0] in {*sys.stdlib_module_names, "databanzhaf"} - {"__main__"}:
        return False
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return "site-packages" not in file and "dist-packages" not in file


def code_of(function: Any) -> CodeType | None:
    """The code of a function, a method, a partial or a callable object."""
    inner = _unwrap(function)
    for candidate in (inner, vars(type(inner)).get("__call__")):
        code = getattr(candidate, "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None


def _class(kind: type) -> str:
    """A class by its name; one of the user's own, which may change between two runs, also by its methods' code."""
    if not _is_own(kind.__module__):
        return _name(kind)
    codes = [_flatten(method.__code__) for _, method in sorted(vars(kind).items()) if hasattr(method, "__code__")]
    return f"{_name(kind)} {_digest(b'|'.join(codes))}"


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}" if hasattr(thing, "__qualname__") else _name(type(thing))


def _unwrap(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _names(code: CodeType) -> list[str]:
    inner = [name for constant in code.co_consts if isinstance(constant, CodeType) for name in _names(constant)]
    return list(dict.fromkeys([*code.co_names, *inner]))


def _flatten(code: CodeType) -> bytes:
    """The code and its constants, nested functions included, without file names and line numbers."""
    parts = [code.co_code, repr(code.co_names).encode(), repr(code.co_varnames).encode()]
    for constant in code.co_consts:
        parts.append(_flatten(constant) if isinstance(constant, CodeType) else _constant(constant))
    return b"\0".join(parts)


def _constant(constant: object) -> bytes:
    # A frozenset's order changes with the process (string hashing); its sorted members do not.
    return repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant).encode()
