"""Models: found, fetched, looked at, loaded and let go.

The rule: a model that answers requests is an immutable `Model`; to change anything about it is to load another one
and to let the old one finish what it has begun.
"""

from .manager import Event, Lease, Loader, Manager, Report, Status
from .model import Model

__all__ = ["Event", "Lease", "Loader", "Manager", "Model", "Report", "Status"]
