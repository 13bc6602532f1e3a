"""Levers as a table: what each can be, and what it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from searchbench.engines.engine import Level, Parameter


def described(table: Mapping[Parameter, str]) -> tuple[Parameter, ...]:
    """The levers in order, each with its sentence."""
    return tuple(replace(lever, doc=doc) for lever, doc in table.items())


def number(
    name: str, default: int | float, between: tuple[float, float], *, index: bool = False
) -> Parameter:
    """A number between two, both included; with decimals if its default has them."""
    least, most = between
    return Parameter(name, type(default), default, "", minimum=least, maximum=most, index=index)


def choice(
    name: str, *levels: Level, default: Level | None = None, index: bool = False
) -> Parameter:
    """One of these; the first if nothing else is said."""
    chosen = levels[0] if default is None else default
    return Parameter(name, type(chosen), chosen, "", choices=levels, index=index)


def counts(name: str, between: tuple[float, float]) -> Parameter:
    """A number or several of them, as a text; nothing if nothing is said."""
    least, most = between
    return Parameter(name, str, "", "", minimum=least, maximum=most, counts=True)


def switch(name: str, default: bool, *, index: bool = False) -> Parameter:
    """On or off."""
    return Parameter(name, bool, default, "", index=index)
