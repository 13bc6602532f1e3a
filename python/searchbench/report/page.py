"""The document as one HTML file that needs nothing else: no network, and no script to be read.

A content security policy in the page forbids every request and every script but ours (by its
digest), so that even text that slipped through the escaping could do nothing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape

from searchbench.report.document.blocks import Document
from searchbench.report.document.paper import marked
from searchbench.report.document.text import fit
from searchbench.report.figures import look

_CODE = re.compile("`([A-Za-z][^`\\n]{0,80})`")  # keys and commands, as they stand in sentences


def page(document: Document) -> str:
    """The whole page."""
    script = _template("page.js")
    return (
        _environment()
        .get_template("page.html")
        .render(
            document=marked(document),
            style=Markup(_style()),
            script=Markup(script),
            digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["coded"] = _coded
    return environment


def _coded(text: str) -> Markup:
    """A sentence in which what stands between backticks is set as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(fit(text)))))


def _shown(value: Any) -> Any:
    """Every string that is not markup of ours passes here before it is escaped."""
    return fit(value) if type(value) is str else value


def _style() -> str:
    """The style sheet, with the rules that turn the colours of figures with the theme."""
    names = {colour: f"--c{i}" for i, colour in enumerate(look.DARK)}
    light = "".join(f"{name}:{colour};" for colour, name in names.items())
    dark = "".join(f"{names[colour]}:{other};" for colour, other in look.DARK.items())
    rules = "".join(
        f'svg [{what}="{colour}"]{{{what}:var({name})}}'
        for colour, name in names.items()
        for what in ("fill", "stroke")
    )
    text = _template("page.css").replace("/*light*/", light).replace("/*dark*/", dark)
    return text + rules


@cache
def _template(name: str) -> str:
    return resources.files("searchbench.report").joinpath("templates", name).read_text("utf-8")
