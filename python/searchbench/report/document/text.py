"""Text from anywhere, made fit to be shown.

Documents and queries are data that strangers wrote. Escaping for HTML is the template's work
and quoting for the PDF is JSON's; what neither does is done here: control characters, which XML
forbids, and the marks that turn the direction of the text around them are made visible.
"""

from __future__ import annotations

import re

# C0 and C1 controls but tab and newline; surrogates; what U+202E and its kin do to a line;
# zero-width marks that hide a difference; the two non-characters that XML 1.0 forbids.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069"
    "\ufeff\ufffe\uffff\U000e0000-\U000e007f]"
)


def fit(text: str) -> str:
    r"""``text`` with every unfit character written out (``\x1b``, ``\u202e``); lines are kept."""
    return _UNFIT.sub(_written_out, text)


def line(text: str) -> str:
    """``text`` fit to be shown in one line: every run of white space is one space."""
    return " ".join(fit(text).split())


def short(text: str, limit: int) -> str:
    """``text`` in one line of at most ``limit`` characters; what was cut is marked by "…"."""
    text = line(text)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
