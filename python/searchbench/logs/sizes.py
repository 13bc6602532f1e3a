"""The sizes of indexes: from Sphinx's files, or from a list."""

from __future__ import annotations

from pathlib import Path

from searchbench.errors import QueryError
from searchbench.sizes import size_bytes


def sizes_of(path: Path) -> dict[str, int]:
    """Bytes by name of the index.

    Of a folder the ``.spd`` files below it: Sphinx's lists of documents, by which the published
    analysis sorts indexes. Of a file a name and a size on each line. QueryError where neither.
    """
    if path.is_dir():
        found = {p.stem: p.stat().st_size for p in sorted(path.rglob("*.spd"))}
        if not found:
            raise QueryError(
                f"{path} has no .spd files; name Sphinx's folder of indexes, or a file with a NAME "
                "and BYTES on each line"
            )
        return found
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise QueryError(f"the sizes of indexes {path} cannot be read: {error}") from error
    sizes = {}
    for number, row in enumerate(text.splitlines(), 1):
        if not row.strip():
            continue
        name, _, size = row.replace(",", " ").replace("\t", " ").strip().rpartition(" ")
        try:
            sizes[name.strip()] = int(size) if size.isdigit() else size_bytes(size)
        except ValueError as error:
            raise QueryError(f"{path}:{number}: {error}; a line is a NAME and BYTES") from None
    return sizes
