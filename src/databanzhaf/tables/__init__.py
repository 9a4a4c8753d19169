"""Tables: read, split, encode, cluster."""

from databanzhaf.tables.cluster import clusters
from databanzhaf.tables.encode import Encoder, mostly_numbers
from databanzhaf.tables.read import file_digest, read_table
from databanzhaf.tables.split import held_out

__all__ = ["Encoder", "clusters", "file_digest", "held_out", "mostly_numbers", "read_table"]
