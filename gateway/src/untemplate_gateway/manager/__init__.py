"""Models: found, downloaded, checked, loaded and unloaded.

A model that answers requests is an immutable `Model`. To change one, load another in its place; the old one finishes
its running requests.
"""

from .manager import Manager
from .model import Loader, Model, Report
from .slots import Slot

__all__ = ["Loader", "Manager", "Model", "Report", "Slot"]
