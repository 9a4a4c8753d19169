"""The shell: commands, signals, streams, text."""

from databanzhaf.cli.commands import app, run

__all__ = ["app", "run"]
