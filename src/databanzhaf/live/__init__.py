"""A run that another process makes, shown in a browser while it goes on."""

from databanzhaf.live.place import Place, find
from databanzhaf.live.server import Server
from databanzhaf.live.watch import Watch

__all__ = ["Place", "Server", "Watch", "find"]
