"""`python -m databanzhaf`."""

from databanzhaf.cli import app

app(prog_name="databanzhaf")
