"""docs/methodology/audit.md names every kind of finding, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "python" / "searchbench"
# Of one name that is put together from two, and of those that a sweep calls otherwise.
MADE = {"foreign CPU", "foreign CPU unknown", "not kept up", "not measured",
        "pressure on disk", "pressure on memory", "pressure on cores"}  # fmt: skip
MAKERS = ("Finding", "_warning")


def kinds(tree: ast.AST) -> Iterator[str]:
    """The kinds that stand in a source: first of a row of five, or of what makes a finding."""
    for node in ast.walk(tree):
        first: ast.expr | None = None
        if isinstance(node, ast.Yield | ast.Return) and isinstance(node.value, ast.Tuple):
            first = node.value.elts[0] if len(node.value.elts) == 5 else None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in MAKERS and node.args:
                first = node.args[0]
            elif node.func.id == "Note":
                first = next((k.value for k in node.keywords if k.arg == "kind"), None)
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first.value


def test_the_tables_of_the_audit_have_every_kind_of_finding() -> None:
    found = {
        kind
        for folder in ("analysis", "lab")
        for path in (SOURCES / folder).rglob("*.py")
        for kind in kinds(ast.parse(path.read_text()))
    }
    assert len(found) > 40, "they are found at all"
    audit = (ROOT / "docs" / "methodology" / "audit.md").read_text()
    tables = audit.partition("\n## Little's law\n")[0]
    rows = re.findall(r"^\| (.+?) \|.*\|$", tables, re.MULTILINE)
    named = {name for row in rows for name in row.split(", ")} - {"finding"}
    assert named == found | MADE
