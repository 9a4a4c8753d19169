"""`python -m databanzhaf`."""

from databanzhaf.cli import run

run()
