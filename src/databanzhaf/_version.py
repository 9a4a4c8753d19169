"""The version, in a file of its own so that any room may read it."""

__version__ = "0.2.0"
