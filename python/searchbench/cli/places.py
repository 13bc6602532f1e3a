"""``searchbench places``: what this machine can vary; and undoing what a killed run left."""

from __future__ import annotations

from dataclasses import asdict

from cyclopts import App

from searchbench.cli.flags import Json, flowing

app = App(
    name="places",
    help="List which levers of places this machine has, and what is missing for the others.",
    help_format="plaintext",
)


@app.command
@flowing
def clean(*, as_json: Json = False) -> int:
    """Remove what killed runs left: mounts, loop devices, pools, control groups, namespaces.

    Removes only what those runs wrote down before they made it, and only if it has not become
    something else. Whatever a living run has made is left alone. Every run begins with this
    clean-up.

    Exits with 1 if something could not be removed.

    Parameters
    ----------
    as_json
        Print JSON.
    """
    from searchbench.lab.place import ledger
    from searchbench.terminal import out

    done = ledger.clean()
    if as_json:
        out.as_json({**asdict(done), "ledgers": str(ledger.folder())})
        return 1 if done.left else 0
    out.points([f"undone: {what}" for what in done.undone])
    out.points([f"left: {why}" for why in done.left])
    if done.live:
        out.say(f"not touched: what is in use by {', '.join(f'process {p}' for p in done.live)}")
    if not (done.undone or done.left):
        out.say("there is nothing to undo")
    return 1 if done.left else 0


@app.default
@flowing
def places(*, as_json: Json = False) -> int:
    """List which levers of places this machine has, and what is missing for the others.

    Parameters
    ----------
    as_json
        Print JSON.
    """
    from searchbench.lab.place.abilities import abilities
    from searchbench.terminal import out

    found = abilities()
    if as_json:
        out.as_json([{**asdict(one), "here": one.here} for one in found])
        return 0
    out.table(
        ("lever", "here", "in a study"),
        [(one.lever, "yes" if one.here else "no", one.means) for one in found],
    )
    missing = [f"{one.lever}: {one.missing}; {one.remedy}" for one in found if not one.here]
    if missing:
        out.say()
        out.points(missing)
    return 0
