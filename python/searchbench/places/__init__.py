"""Places: where a system's processes run and where its files lie. Descriptions; the lab applies.

``model.py``: a place as a treatment has it, resolved. ``keys.py``: the tables of a study that
describe one. ``resolve.py``: from the one to the other. ``cores.py``: how this machine's cores are
dealt out.
"""

from __future__ import annotations

from searchbench.places.cores import Cores
from searchbench.places.model import Host, Place, Storage, place_of

__all__ = ["Cores", "Host", "Place", "Storage", "place_of"]
