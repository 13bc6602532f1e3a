"""How each trial came to a steady state."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from searchbench.report.document.blocks import Section, Text
from searchbench.report.document.content import Content, figure
from searchbench.report.document.text import line
from searchbench.report.figures import study as figures
from searchbench.report.tables import numbers


def section(content: Content) -> Section:
    """The start of every trial that is drawn, and those that were steady too late."""
    windows = {
        t.trial: (t.window.start / 1e9, t.window.end / 1e9)
        for t in content.record.trials
        if t.window is not None
    }
    blocks = figure(
        "warmup",
        "From the first request to the last",
        "A line for each trial, relative to its own mean over the measured window (shaded). What "
        "is before the window is warm-up and counts for nothing. Triangles: steady from here on.",
        partial(figures.warmup, replace(content.judgement, treatments=content.drawn), windows),
    )
    late = [
        f"{line(t.trial)} ({numbers.human(t.steady_from_s, 's')})"
        for treatment in content.drawn
        for t in treatment.trials
        if t.steady_from_s is not None
        and t.trial in windows
        and t.steady_from_s > windows[t.trial][0]
    ]
    if late:
        blocks.append(Text("Steady only after the window had begun: " + ", ".join(late) + "."))
    few = [
        line(treatment.label)
        for treatment in content.drawn
        if treatment.trials and not any(t.warmup for t in treatment.trials)
    ]
    if not blocks:
        blocks = [Text("No trial has enough samples to draw its warm-up.")]
    elif few:
        blocks.append(Text("Too few requests to draw: " + ", ".join(few) + "."))
    return Section("warmup", "Warm-up", tuple(blocks))
