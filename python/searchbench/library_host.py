"""``python -m searchbench.library_host ENGINE --port P --data DIR ...``: be a library host.

The process is a Python interpreter that calls into the compiled hosts once and never comes
back until it is told to stop; FORMATS.md describes its options.
"""

from __future__ import annotations

import sys

from searchbench._core import serve_library_host

if __name__ == "__main__":
    sys.exit(serve_library_host(sys.argv[1:]))
