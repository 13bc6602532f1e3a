"""The record on disk: the narrow waist between doing and judging. FORMATS.md describes its files.

Every file is written under a temporary name and renamed, and ``trial.json`` last of its folder:
a trial is on record if, and only if, its ``trial.json`` is there.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pyarrow as pa

from searchbench.errors import RecordError
from searchbench.record import old
from searchbench.record.lock import LOCK
from searchbench.record.roles import ASKS, WRITES
from searchbench.record.samples import (
    IO,
    PROBE,
    REPLIES,
    SAMPLES,
    STATEMENTS,
    read_table,
    write_tables,
)
from searchbench.record.trial import Trial
from searchbench.spec import near_file
from searchbench.study.plan import Plan

FORMAT = 2
READ = (1, 2)


@dataclass(frozen=True)
class Record:
    """A record that was opened to be read; everything is read from disk when asked for."""

    path: Path

    @cached_property
    def about(self) -> dict[str, Any]:
        """record.json: the format, the version that wrote it, when."""
        return _read_json(self.path / "record.json")

    @cached_property
    def plan(self) -> Plan:
        """plan.json: treatments, trials in order, exclusions, how it is to be judged."""
        path = self.path / "plan.json"
        return read_plan(_read_json(path), path)

    @cached_property
    def host(self) -> dict[str, Any]:
        """host.json: the machine's fingerprint."""
        return _read_json(self.path / "host.json")

    @property
    def study_text(self) -> str:
        """The study file as it was run."""
        try:
            return (self.path / "study.toml").read_text(encoding="utf-8")
        except FileNotFoundError:
            raise _missing(self.path / "study.toml") from None

    @cached_property
    def trials(self) -> list[Trial]:
        """Every trial that is judged, in the order of the plan."""
        return [trial for trial in self._every if not trial.traced]

    @property
    def traced(self) -> list[Trial]:
        """Every trial whose reads and writes were traced: its times are not to be used."""
        return [trial for trial in self._every if trial.traced]

    @cached_property
    def _every(self) -> list[Trial]:
        order = {t.id: i for i, t in enumerate(self.plan.every)}
        found = [read_trial(p) for p in (self.path / "trials").glob("*/trial.json")]
        found.sort(key=lambda t: order.get(t.trial, len(order)))
        _insist_on_plan(self.path, self.plan, found)
        _insist_on_one_corpus(self.path, found)
        return found

    @property
    def set_aside(self) -> list[str]:
        """The trials that were measured once more, by their names, each as often as it was."""
        return sorted(path.name.rpartition(".")[0] for path in (self.path / VOID).glob("*.*"))

    @cached_property
    def sittings(self) -> dict[str, int]:
        """By trial, in which pass through the plan it was measured, from 0: trials of other passes
        met another machine perhaps. The next pass began wherever a trial was begun after one that
        the plan has later. Of a trial without an instant on record it counts how often it was set
        aside.
        """
        place = {t.id: i for i, t in enumerate(self.plan.every)}
        begun = {t.trial: t.drive.started_unix_ns for t in self.trials if t.drive is not None}
        found, sitting, last = {}, 0, -1
        for name in sorted((name for name, at in begun.items() if at), key=lambda n: begun[n]):
            here = place.get(name, len(place))
            sitting += here < last
            found[name], last = sitting, here
        aside = self.set_aside
        return {t.trial: found.get(t.trial, aside.count(t.trial)) for t in self.trials}

    def samples_path(self, trial: str) -> Path:
        """Where the samples of a trial are, for readers that scan many at once."""
        return self.path / "trials" / trial / "samples.parquet"

    def samples(self, trial: str, columns: list[str] | None = None) -> pa.Table:
        """The samples of a trial: a row a request."""
        return read_table(self.samples_path(trial), SAMPLES, columns)

    def replies(self, trial: str) -> pa.Table:
        """The kept and decoded replies of a trial."""
        return read_table(self.path / "trials" / trial / "replies.parquet", REPLIES, None)

    def probe(self, trial: str) -> pa.Table:
        """What the machine and the server did while the trial was driven."""
        return read_table(self.path / "trials" / trial / "probe.parquet", PROBE, None)

    def sizes(self, trial: str) -> pa.Table:
        """The reads and writes of a traced trial, by phase, file system and call."""
        return read_table(self.path / "trials" / trial / "io.parquet", IO, None)

    def statements(self, trial: str) -> pa.Table:
        """When each statement of the operations of a trial was sent and answered; else no rows."""
        return read_table(self.path / "trials" / trial / "statements.parquet", STATEMENTS, None)

    def of_role(self, trial: str, role: str) -> pa.Table:
        """The samples of a role beside the readers; ``query`` is the number of the request."""
        return read_table(self._of_role(trial, role), SAMPLES, None)

    def writes(self, trial: str, role: str) -> pa.Table:
        """What each request of a writer was, and what the engine said of it."""
        return read_table(self._of_role(trial, f"{role}.writes"), WRITES, None)

    def asks(self, trial: str, role: str) -> pa.Table:
        """What was found each time that the markers of a writer were asked for."""
        return read_table(self._of_role(trial, f"{role}.asks"), ASKS, None)

    def replies_of_role(self, trial: str, role: str) -> pa.Table:
        """The kept and decoded replies of a role that reads."""
        return read_table(self._of_role(trial, f"{role}.replies"), REPLIES, None)

    def _of_role(self, trial: str, name: str) -> Path:
        return self.path / "trials" / trial / "roles" / f"{name}.parquet"

    def queries(self, digest: str) -> list[dict[str, Any]]:
        """The distinct queries of a query set: ``query``, ``text``, ``algebra``."""
        path = self.path / "queries" / f"{digest}.jsonl"
        try:
            return [orjson.loads(line) for line in path.read_bytes().splitlines()]
        except FileNotFoundError:
            raise RecordError(f"{path}: the query set of this record is missing") from None
        except orjson.JSONDecodeError as error:
            raise RecordError(f"{path}: is not JSON lines ({error}); it is damaged") from None

    def titles(self, digest: str) -> dict[str, str]:
        """The titles of documents of a corpus by their ids, as far as they are on record."""
        path = self.path / "titles" / f"{digest}.jsonl"
        try:
            lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
        except FileNotFoundError:
            return {}
        except orjson.JSONDecodeError as error:
            raise RecordError(f"{path}: is not JSON lines ({error}); it is damaged") from None
        return {line["id"]: line["title"] for line in lines}


def open_record(path: Path | str) -> Record:
    """Open a record to read it. RecordError if it is none, or of a format we do not read."""
    folder = Path(path)
    if not (folder / "record.json").is_file():
        hint = "" if folder.exists() else near_file(folder)
        raise RecordError(f"{folder}: not a record (it has no record.json){hint and f'; {hint}'}")
    record = Record(folder)
    version = record.about.get("format")
    if version not in READ:
        raise RecordError(
            f"{folder}: the record has format {version}, and this searchbench reads formats "
            f"{READ[0]} to {READ[-1]}; read it with searchbench "
            f"{record.about.get('searchbench', 'of the version that wrote it')}"
        )
    if not (folder / "trials").is_dir():  # it is made before record.json
        raise _missing(folder / "trials")
    return record


VOID = "void"  # the folder of what was measured once more


class Writer:
    """Writes a record, a whole file at a time. Making one on an existing record continues it."""

    def __init__(
        self,
        path: Path,
        *,
        study_text: str,
        plan: Plan,
        host: Mapping[str, Any],
        version: str,
        base: Path | None = None,
    ) -> None:
        """``base``: the folder that the study's file names are relative to."""
        self.path = path
        begun = (path / "record.json").exists()
        if begun and _continued(path, plan):
            pass
        elif path.exists() and not path.is_dir():
            raise RecordError(f"{path}: is a file, and a record is a folder; name another")
        elif path.exists() and not begun and any(each.name != LOCK for each in path.iterdir()):
            raise RecordError(f"{path}: the folder is not empty and holds no record; name another")
        else:
            with _room(path):
                (path / "trials").mkdir(parents=True, exist_ok=True)
                (path / "queries").mkdir(exist_ok=True)
                _write(path / "study.toml", study_text.encode())
                _write(path / "plan.json", _pretty(msgspec.to_builtins(_drawn(plan))))
                _write(path / "host.json", _pretty(host))
                about = {
                    "format": FORMAT,
                    "searchbench": version,
                    "created": datetime.now(UTC).isoformat(timespec="seconds"),
                } | ({"base": str(base)} if base else {})
                _write(path / "record.json", _pretty(about))

    @property
    def record(self) -> Record:
        """The record as it is on disk now."""
        return open_record(self.path)

    def grow(self, plan: Plan) -> None:
        """Put a longer plan in place of the plan: what a search decided while it measured."""
        with _room(self.path):
            _write(self.path / "plan.json", _pretty(msgspec.to_builtins(plan)))

    def has(self, trial: str) -> bool:
        """Is this trial on record, and not failed? A failed one is tried again."""
        path = self.path / "trials" / trial / "trial.json"
        return path.exists() and read_trial(path).status == "ok"

    def set_aside(self, trial: str) -> None:
        """Move what is on record of a trial into ``void/``, so that it is measured once more."""
        times = 1
        while (to := self.path / VOID / f"{trial}.{times}").exists():
            times += 1
        with _room(self.path):
            to.parent.mkdir(exist_ok=True)
            (self.path / "trials" / trial).rename(to)

    def queries(self, digest: str, lines: Iterable[Mapping[str, Any]]) -> None:
        """Keep a query set, once."""
        path = self.path / "queries" / f"{digest}.jsonl"
        if not path.exists():
            with _room(path):
                _write(path, b"".join(orjson.dumps(line) + b"\n" for line in lines))

    def titles(self, digest: str, titles: Mapping[str, str]) -> None:
        """Keep titles of documents of a corpus, in place of those that are there."""
        path = self.path / "titles" / f"{digest}.jsonl"
        lines = ({"id": number, "title": title} for number, title in titles.items())
        with _room(path):
            path.parent.mkdir(exist_ok=True)
            _write(path, b"".join(orjson.dumps(line) + b"\n" for line in lines))

    def trial(
        self,
        about: Trial,
        *,
        samples: pa.Table | Iterable[pa.Table] | None = None,
        replies: pa.Table | None = None,
        probe: pa.Table | None = None,
        sizes: pa.Table | None = None,
        statements: pa.Table | None = None,
        logs: Mapping[str, bytes] | None = None,
        roles: Mapping[str, pa.Table | Iterable[pa.Table]] | None = None,
    ) -> None:
        """Put one trial on record; ``about`` becomes its trial.json. Replaces a failed attempt.

        ``samples`` may come in several tables, which are written as they come. ``roles``: the
        tables of the roles beside the readers, by the name of their file; these too.
        """
        folder = self.path / "trials" / about.trial
        with _room(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            tables = {
                "samples": samples,
                "replies": replies,
                "probe": probe,
                "io": sizes,
                "statements": statements,
            }
            if roles:
                (folder / "roles").mkdir()
                tables |= {f"roles/{name}": table for name, table in roles.items()}
            for name, table in tables.items():
                if table is not None:
                    path = folder / f"{name}.parquet"
                    part = path.with_name(f".{path.name}")
                    write_tables(part, [table] if isinstance(table, pa.Table) else table)
                    part.rename(path)
            for name, content in (logs or {}).items():
                _write(folder / name, content)
            _write(folder / "trial.json", _pretty(msgspec.to_builtins(about)))


def read_plan(payload: dict[str, Any], where: Path | str = "this plan") -> Plan:
    """The plan of a plan.json, of this format or an older one; RecordError if it is not whole."""
    found = payload.get("format")
    if found not in READ:
        raise RecordError(
            f"{where} is of format {found!r}, and this searchbench reads formats 1 and 2; use the "
            "version that wrote it, which record.json names"
        )
    try:
        return msgspec.convert(old.plan(payload) if found == 1 else payload, Plan)
    except (AttributeError, KeyError, TypeError) as error:  # of the older format
        raise RecordError(f"{where} is not whole: {error!r}") from error
    except msgspec.ValidationError as error:
        raise RecordError(f"{where} is not whole: {error}") from error


def read_trial(path: Path) -> Trial:
    """A trial.json, of this format or an older one; RecordError where it is not whole."""
    payload = _read_json(path)
    if payload.get("format") == 1:
        payload = old.trial(payload)
    if payload.get("format") != FORMAT:
        raise RecordError(
            f"{path}: has format {payload.get('format')!r}, and this searchbench reads formats "
            f"{READ[0]} to {READ[-1]}"
        )
    try:
        return msgspec.convert(payload, Trial)
    except msgspec.ValidationError as error:
        raise RecordError(f"{path}: is not whole ({error}); the record is damaged") from error


def _insist_on_plan(path: Path, plan: Plan, trials: Iterable[Trial]) -> None:
    """RecordError where a trial says of itself what the plan does not say of it."""
    planned = {trial.id: trial.treatment for trial in plan.every}
    treatments = {treatment.id: treatment for treatment in plan.treatments}
    for trial in trials:
        of = treatments.get(planned.get(trial.trial, ""))
        if of is None:
            continue
        facts = (
            ("treatment", trial.treatment, of.id),
            ("system", trial.system, of.system),
            ("levels", trial.levels, of.levels),
        )
        for what, said, is_planned in facts:
            if said and said != is_planned:
                raise RecordError(
                    f"{path / 'trials' / trial.trial / 'trial.json'}: has {what} {said}, and "
                    f"plan.json has {is_planned} for this trial; the record is damaged"
                )


def _insist_on_one_corpus(path: Path, trials: Iterable[Trial]) -> None:
    """RecordError where trials of one treatment had other documents: their figures would be one
    figure.
    """
    first: dict[str, Trial] = {}
    for trial in trials:
        if trial.status != "ok" or not trial.corpus.digest:
            continue
        other = first.setdefault(trial.treatment, trial)
        if trial.corpus.digest != other.corpus.digest:
            raise RecordError(
                f"{path}: the trials {other.trial} and {trial.trial} of {trial.label} had other "
                f"documents ({other.corpus.documents or 0:,} and {trial.corpus.documents or 0:,}), "
                "and one record cannot have both; move the folders of the trials with one of them "
                "out of trials/, or run the study anew"
            )


def has_trials(path: Path) -> bool:
    """Whether there is a record with a trial, in whatever state."""
    trials = path / "trials"
    return (path / "record.json").exists() and trials.is_dir() and any(trials.iterdir())


def _drawn(plan: Plan) -> Plan:
    """The plan of a run that begins. Runs that are asked alike have the luck of one draw in common,
    and do not show how far another would have moved them.
    """
    if plan.draw_seed is not None:
        return plan
    return msgspec.structs.replace(plan, draw_seed=secrets.randbelow(2**32))


def _continued(path: Path, plan: Plan) -> bool:
    """Whether a record is continued with this plan. One that has no trial yet is made anew for
    another: where a mistake ended the first run, nothing is lost by mending it.

    RecordError where it is of another study and has trials.
    """
    kept = open_record(path)
    try:
        check_same_study(kept, plan)
    except RecordError:
        if has_trials(path):
            raise
        return False
    return True


def check_same_study(kept: Record, new: Plan) -> None:
    """RecordError where a record cannot be continued with this plan."""
    if kept.about.get("format") != FORMAT:
        raise RecordError(
            f"{kept.path}: holds a record of format {kept.about.get('format')}, which is read "
            "but not continued; name another folder with --record"
        )
    # The words of a command line may differ in what measures nothing, such as --json: all that
    # does is in the rest of the plan.
    judging = msgspec.structs.replace(kept.plan.judging, command=new.judging.command)
    before = msgspec.structs.replace(kept.plan, judging=judging)
    if new.draw_seed is None:  # the record has its own
        before = msgspec.structs.replace(before, draw_seed=None)
    if before.judging.measure == "capacity":  # a search has appended to the plan it began with
        before = msgspec.structs.replace(
            before,
            treatments=before.treatments[: len(new.treatments)],
            trials=before.trials[: len(new.trials)],
            excluded=new.excluded,
            estimated_s=new.estimated_s,
        )
    if before != new:
        raise RecordError(
            f"{kept.path}: holds another study, or another version of this one; name another "
            "folder with --record, or remove this one to begin again"
        )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        raise _missing(path) from None
    except orjson.JSONDecodeError as error:
        raise RecordError(f"{path}: is not JSON ({error}); the record is damaged") from None
    if not isinstance(found, dict):
        raise RecordError(f"{path}: is not a JSON object; the record is damaged")
    return found


def _missing(path: Path) -> RecordError:
    return RecordError(f"{path}: is missing; the record is not whole")


def _pretty(value: Mapping[str, Any]) -> bytes:
    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(value, option=options) + b"\n"


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)


@contextmanager
def _room(path: Path) -> Iterator[None]:
    """Say what to do when the disk is full or may not be written."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RecordError(
                f"{path}: the disk is full; free some room and give the same command again: "
                "it continues after the last trial on record"
            ) from error
        raise RecordError(f"{path}: cannot be written ({error.strerror})") from error
