"""The reference of study files, written from the keys as they are declared and checked.

``python -m searchbench.study.reference > docs/STUDY.md``; a test holds the file to the code.
Longer than most files, because half of it is the text of that page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from searchbench import corpora
from searchbench.engines import ENGINES
from searchbench.engines.engine import INGEST, Engine, Parameter
from searchbench.engines.job import OPENING
from searchbench.places.keys import FILES, HOST_KEYS, PLACE_KEYS, STORAGE_KEYS
from searchbench.spec import SpecKey, show
from searchbench.study.curve import KEYS as CURVE_KEYS
from searchbench.study.keys import (
    AGREEMENT_KEYS,
    CONTROL_KEYS,
    INGEST_KEYS,
    PUT_IN_KEYS,
    REQUEST_KEYS,
    SYSTEM_KEYS,
    TOP_KEYS,
    VERDICT_KEYS,
)
from searchbench.study.systems import spec_of
from searchbench.workload.load_table import SPEC_KEYS as LOAD_KEYS
from searchbench.workload.operations.keys import METHOD_KEYS, OPERATION_KEYS
from searchbench.workload.queries import registry
from searchbench.workload.roles import ROLE_KEYS

_HEAD = """\
# Study files

A study is a TOML file that holds a question and everything needed to answer it. The smallest study
has a question, documents, queries and a system:

```toml
question = "Which of tantivy and SQLite FTS5 serves my product search faster?"
[corpus]
files = "products.csv"
[queries]
file = "queries.txt"
[systems.tantivy]
[systems.sqlite]
```

File names are relative to the study file. `searchbench check STUDY` reports every mistake in a
study, with its line and column. It also reads the headers, first rows and first lines of the files
that the study names. If a few odd values there decide the type of a column (one "n/a" among
prices), it names the first one with its line, and says what to declare.

The first part of this page explains what a study can do, and the second lists every key. The page
is generated from the keys that the program checks (`python -m searchbench.study.reference >
docs/STUDY.md`).

## Factors

```toml
[factors]
"load.clients" = [1, 2, 4]              # any key of [corpus], [queries], [requests], [load]
"systems.tantivy.parts" = [1, 2, 4]     # a parameter of one system: crossed within it
"systems.*.cache_mb" = [16, 64]         # a parameter of all systems, if all have it
"corpus.scale" = [0.1, 1, 10]           # a tenth of the documents, all of them, ten copies of all
```

All levels of all factors are crossed with each other. The systems are a factor too. Queries are
sampled from the corpus before it is scaled, so every size gets the same ones.

A level may set several keys at once. Such levels have names, and their factor has a name without a
dot. In comparisons, figures and exclusions it counts as one factor:

```toml
[factors]
spread = [
  { name = "one part",   set = { "systems.sphinx.parts" = 1, "systems.sphinx.dist_threads" = 0 } },
  { name = "four parts", set = { "systems.sphinx.parts" = 4, "systems.sphinx.dist_threads" = 4 } },
]
```

All levels of such a factor set the same keys, and no key is set twice in a study. A factor that
sets parameters of one system alone is crossed within that system.

`exclude` leaves out crossings, that is, combinations of levels:

```toml
exclude = [
  { when = { "load.clients" = 4, "system" = "sqlite" }, reason = "one writer" },
  { when = { spread = "one part", "load.clients" = [2, 4] }, reason = "one part has one thread" },
]
```

`[held]` says in words, or as a table, what is held constant. The report shows it as a statement of
the study's author. A key that the study varies is refused. If the record has the value of a key
(`"load.clients"`, `"systems.NAME.LEVER"`, a fact of host.json such as `governor`), the statement is
checked against that value, and a warning says where they differ. A statement of several words is
prose and is not checked; nor is anything that the record does not have.

## Tables: typed columns, keys and indexes

With `family = "table"`, the documents are rows of typed columns with a primary key, read from files
or generated. MariaDB and PostgreSQL make a plain table of them: columns with their own names, the
primary key, the declared indexes and no others, and an index for each text column. Other engines
index every column.

```toml
[corpus]
family = "table"
table = "orders"                       # what SQL calls it
rows = 1_000_000
key = ["account", "number"]            # without `key`: id = 1, 2, 3, ..
indexes = ["state", ["state", "made"], { columns = ["token"], unique = true }]

[corpus.columns]
account = { type = "integer", distribution = "steps", each = 100 }      # 1 a hundred times, 2, ..
number = { type = "integer", distribution = "cycle", distinct = 100 }   # 1 to 100, and again
token = { type = "integer", distribution = "shuffled" }                 # each number once, no order
state = { type = "keyword", distribution = "zipf", distinct = 10 }
made = { type = "date", low = "2010-01-01", high = "2025-01-01" }
label = { type = "keyword", distribution = "random", length = 64 }      # hexadecimal digits
note = { type = "text", words = 12 }                                    # 1 to 23 words
```

A column has one of the types of generated fields (below, `fields`), or is a text. An integer may
also have one of four distributions that depend on the position of the row (`place`), counted from
0:

| distribution | value | |
|---|---|---|
| `sequence` | `low + step * place` | the usual key; `step = 10` leaves gaps |
| `shuffled` | the same numbers | in an order drawn by the seed: neighbours have distant keys |
| `steps` | `low + place // each` | the same number in `each` rows |
| `cycle` | `low + place % distinct` | |

By default `low` and `step` are 1, and `each` and `distinct` are 100. A key is a `sequence` or
`shuffled`, or a column of `steps` and one with a `cycle` of at least as many numbers as a step has
rows. Any other key could occur twice, and is refused. With `files`, `columns` gives types as
`fields` does for other files.

`family = "cars"` generates 15,000 cars that match the counts of a comparison published in 2012:
with `scale = 200`, as there, 1,803,200 of 3,000,000 rows have a mileage above 12,750, and colours,
categories and the tag "cool" occur as often as it printed. Ids continue from copy to copy. Its
table is `car`; its indexes are those of the publication, on `color` and `price`. `searchbench
corpus make cars cars.parquet --repeat 200` writes them out (also .csv, .tsv and .jsonl).

## Places: memory, cores, storage, hosts

A place says where a system runs and where its files are kept. [PLACES.md](PLACES.md) shows which
questions this answers. Each key of a place may be a factor:

```toml
[places.small]
memory = "256MB"          # for all processes of the system and the files that they read
cold = "trial"            # from a restart, with nothing in memory
storage = "slow"          # where all files lie
wal = "fast"              # except the write-ahead log, which lies here

[storages.slow]
filesystem = "ext4"       # made for each index, and removed after it

[storages.fast]
directory = "/mnt/ssd"    # a directory that exists

[factors]
"places.small.cores" = [1, 2]
"storages.slow.like" = ["disk", "ssd"]   # as slow as a rotating disk, or as an SSD
```

With one place, every system that is started runs there. With several, each system names its own
(`place = "small"`), or a factor does (`"systems.*.place" = ["small", "plain"]`). A place without
keys is this machine as it is. A crossing in which a level changes nothing for a system is left out,
and the reason is given: for example, the storage of the write-ahead log does not matter to a system
that writes none.

A storage is one of three things: a file system that is made for the study (`filesystem`), a
`directory` that exists, or memory (`ram = true`). `like` and the limits slow ext4, xfs and btrfs.

A host is a network namespace of this machine, with its own address, cores, share of CPU and memory.
A system with agents names the host of each agent. A place may name the host of the server
(`host = "north"`). This study varies the speed of one of two hosts:

```toml
[hosts.north]
cpu_share = 0.3

[hosts.south]             # its `cpu_share` is varied below, so it is not set here

[systems.sphinx]
agents = ["north", "south"]
parts_by_agent = [2, 1]   # or one number for all

[factors]
"hosts.south.cpu_share" = [0.15, 0.3]
```

Each agent is asked by itself before each trial, and the report says which host governs the speed of
the whole, if that is resolved. The shares of one core should add up to at most 1. Otherwise the
hosts take time from each other, which separate machines do not. `searchbench places` says whether
this machine can have hosts and delays.

A host may also be another machine. Give `ssh`, the name by which ssh knows it:

```toml
[hosts.north]
ssh = "north"
address = "10.0.0.9"      # where the agent listens; default: the address to which ssh connects
path = "/opt/sphinx/bin"  # if the engine's programs are not in its PATH
```

[PLACES.md](PLACES.md#several-hosts) says what such a machine needs, and what happens to its files.

Sizes are strings such as "256MB". `k`, `M`, `G` and `T` are powers of 1,024; `kB`, `MB`, `GB` and
`TB` are powers of 1,000.

If the study has no place, `--set` makes one: `searchbench run study.toml --set
places.small.memory=256MB` runs every system with that much memory.

## Jobs: what is done once

A job is work that an engine does once: an import, making an index, a backup, a restore, or opening
(from the start of the server until it answers). A study names the jobs of each trial in their
order: in a list, or with a table for each job that sets its levers. Any lever may be a factor:

```toml
jobs = ["import", "backup", "restore"]   # at the top, beside `question`; levers have their defaults
```

```toml
[jobs.import]             # `triples` is varied below, so it is not set here

[jobs.backup]
compression = 1

[factors]
"jobs.import.triples" = [1, 100]
```

Each job is done on a server that has just started. It is timed from the first byte sent to the last
answer, while the probe records what the machine does. Then the documents are counted, the server is
stopped, and the sizes of the files are added up by kind. A trial fails if a job leaves no files,
loses documents, or makes something that gives other answers than the original. The jobs of each
engine are listed below, with its parameters.

The job `ingest` is common to all engines: it puts the documents in and settles, with `batch`
documents in each request over a number of `connections`. With the job `index`, MariaDB and
PostgreSQL make all indexes anew, or only the one on the columns that `of` names:

```toml
[jobs.ingest]

[jobs.index]

[factors]
"jobs.ingest.batch" = [1, 1000]            # one by one, and a thousand at once
"jobs.index.of" = ["color", "contents"]
```

Each trial has an index of its own. A job that puts the documents in, as `import` and `ingest` do,
comes first and takes the place of the ingest. After the jobs, `[queries]` are asked once, so that
the answers can be compared; then `[load]` drives them. Without `[load]` nothing is driven, and
without `[queries]` nothing is asked. The verdict is by the time of the first job, unless
`[verdict]` names another metric, such as `metric = "backup_s"`.

## The same study with a change

```sh
searchbench run study.toml --set load.seconds=3 --set systems.tantivy.parts=2
searchbench run study.toml --only system=sqlite
```

`--set KEY=VALUE` sets any key of the study. The value is a TOML value; a string needs no quotes. If
a factor varies that key, the value replaces the factor's levels. `--only FACTOR=LEVEL` leaves out
the other levels of a factor; give it several times to keep several levels. `check`, `plan` and
`verify` take both options too. The record keeps the study as it was run: its first line has the
options, and what `--only` leaves out is written there as an exclusion. The name of the record's
folder contains the options too.

`searchbench run study.toml --quick` is a first look, which takes a minute or two for a few
treatments: at most two blocks, windows of at most three seconds, about 10,000 documents, 200
sampled queries or 1,000 logged ones, operations with three numbers of rows up to 1,000. All other
factors stay as they are, and so do the documents of attached systems. A first look shows whether
everything runs, and roughly how large differences are. It decides nothing, and the report says so
throughout: no difference is resolved, no system is the best, no promise is kept or broken, a sweep
shows its rates and says no law of them, and `compare` refuses the record.

## What is measured: trials, a sweep, or a capacity

A study measures in one of three ways, which `[load]` chooses. All three can be crossed with
factors.

**Trials** are the usual way, and the one for comparisons. Every treatment is measured once in each
block, on a system that was started for it, in an order that the seed shuffles. Three blocks and a
control (one treatment measured twice in each block) show the noise.

**A sweep** is a list of steps in `[load]`, either `clients` or `rate_per_s`. It shows how latency
and throughput change with load. Each configuration is started once in each block. Its steps follow
one another on the same warm system, in the order of the list, and in every second block backwards.

```toml
[load]
clients = [1, 2, 4, 8]
seconds = 5
pause_s = 1        # silence between steps
```

With a *factor* `"load.clients"` the system is started anew for each level instead. Use that if what
one step leaves behind (caches, a heap, open connections) must not affect the next. It costs one
start for each level.

If every system is attached, nothing is started, so the systems take turns within each step. The
second block goes through the steps backwards, and from the third on their order is drawn by lot. A
replay over systems as found (`[ingest] index = "as-found"`) is a sweep of one step, at its `speed`.

**A load of several stages** changes its rate within a trial. A stage is `[SECONDS, RATE]`, or
`[SECONDS, FROM, TO]` for a ramp; so a spike, a ramp, or a long soak is a list of stages:

```toml
[load]
stages = [[60, 100], [30, 400], [60, 100]]   # requests a second: before, in and after a spike
judged_stage = 3                             # the last one; default: the longest at one rate
```

One stage at one rate is the measured window. It is judged, and treatments are compared by it. The
stages before it count as its warm-up. The report shows all stages with their times, and draws the
offered rate below the response times.

The stages can be the curve of a day of a log, compressed:

```toml
[load]
stages = { log = "access.log", seconds = 600, peak_per_s = 400 }
```

`log` is a log, a folder of logs, or a record of `searchbench logs`. The day with most requests is
cut into 48 stages (`stages`, `day`), each with the mean rate of its part of the day, and all rates
are multiplied so that the busiest stage has 400 a second. That stage is the window. The curve
gives only the rates; what is sent comes from `[queries]` or `[requests]`.

Below the curve, the report says where it comes from, and whether it is faithful to the log. It is
if, within a stage, the log's minutes vary as random arrivals do. If they vary more, the real day
had bursts that the load does not have.

Stages at a greater rate between two stages at the same rate are an overload. For each overload, the
report says how much was answered in time meanwhile, and how many seconds later answers were normal
again. With `capacity_per_s` the rates of stages are shares of it, so `[5, 1.5]` is five seconds at
one and a half times the capacity. [ROLES.md](ROLES.md#7-overload) has such a study.

**A capacity** is the greatest rate that keeps a promise. A capacity search chooses the rates, and
the report gives an interval for each promise and configuration. One search answers several
promises.

```toml
[load]
find_capacity = true
slo = ["p99 < 50ms", "p99 < 200ms, errors < 0.1%"]
effort = 0.3       # shorter trials, wider intervals; rough if response times vary much

[factors]
"systems.sphinx.parts" = [1, 2, 4]
```

The search chooses rates, windows and warm-ups, so those keys, and `clients`, are refused beside
`find_capacity` (but with roles, `warmup_s` is needed). Sweeps and capacity searches are driven once
unless `replicates` says more, and have no control.

**The warm-up** lasts until the same queries are no longer seen to become faster and most of the
distinct ones have been asked. At `warmup_limit_s` it ends in any case. It ends too early for a
system whose speed levels off for a while and then improves again: give such a system a fixed
warm-up, with `warmup_s`. A capacity search warms the system up in the same way before it begins (an
`effort` below 1 shortens the limit).

However long the warm-up was, the window is then judged to be [steady, not steady or
unknown](methodology/steadiness.md). A short window shows little: only a system that answers many
requests a second can then be shown to be steady. `searchbench plan` says how many.

## Classes: every figure by kind of question

Queries and requests may carry a class, such as autocomplete and search. Every figure then exists
for each class beside the whole: its share of the load, its throughput, quantiles of service and
response time with their intervals, errors, and the share of its queries that two systems answer
alike. A class comes from one of these:

```toml
[queries]
files = { autocomplete = "prefixes.txt", search = ["words.txt", "phrases.jsonl"] }   # by file
```

```toml
[queries]
file = "queries.jsonl"   # by a key of the line: {"text": "red la", "class": "autocomplete"}
class_key = "kind"       # if the key has another name
```

```toml
[queries]
file = "queries.txt"
classes = "words"        # by shape: words, match, filters, sort, or shape (all but the words)
```

With `[requests]`, lines of JSON may have a `class` too, and groups with names are classes. There,
`classes` is `path` (method and path), `shape` (the class that [`searchbench logs`](LOGS.md) gives a
request), `words`, or `parameter:NAME` (the value of a parameter of the path). `classes` takes the
place of any other class.

The classes are asked in the mix that the files have: with `order = "stretches"` (the default) each
part of the drive has that mix. With `order = "logged"` several files are asked one after another,
so the classes never compete. Twenty classes have figures of their own; if there are more, the rest
is taken as one class.

Two treatments are compared over each class, over the queries of it on which both agree. A class is
called faster or slower only if that stands after correcting for all comparisons of the study and of
its classes together. If a treatment is faster overall and slower for a class, the answer says so.

A promise can be made for each class. In a sweep, each step is held to it, and a class that breaks
it is named. A capacity search finds the rate at which the first class breaks its promise, and names
that class:

```toml
[load]
find_capacity = true
slo = { autocomplete = "p99 < 50ms", search = "p99 < 200ms", "*" = "errors < 0.1%" }
```

`"*"` is all requests. A promise may be a text instead, with the parts of classes separated by
semicolons: `"errors < 0.1%; autocomplete: p99 < 50ms"`. A name with a colon, comma or semicolon
stands in quotation marks there. A list of such promises is several promises, each with a limit of
its own. A class with few requests needs long trials: a search makes its trials as long as the
rarest class needs, up to two minutes, and its interval is wider where that is not enough.

## Requests in place of queries

You can send ready-made requests to systems that already run: paths, SQL statements, JSON, or a log
that a server wrote. `[requests]` then stands in place of `[corpus]` and `[queries]`, and each
system has the URL to which its requests are sent:

```toml
question = "How many clients does the search API sustain?"
[requests]
file = "access.log"
[systems."new API"]
attach = ["http://127.0.0.1:10041", "http://127.0.0.1:10042"]
[systems."old API"]
attach = "http://127.0.0.1:10040"
[load]
clients = [1, 2, 4, 8]
```

Such systems are measured as they are; the parameters of their engines cannot be set. `searchbench
load` writes studies of this kind and runs them. A replay (`kind = "replay"`) sends the whole log at
its own times, unless `seconds` says otherwise.

## Operations in place of queries

An operation is one question in a system's own words: one or several SQL statements, sent as text or
prepared, on one connection; or statements of BQL, requests of HTTP, or a query of the algebra,
which every engine can be asked. Several *methods* answer it, and are compared as systems are.
`[operations.NAME]` then stands in place of `[queries]`. The methods are a factor of their own,
called `method`; if there are several operations, `operation` is a factor too.

```toml
question = "At how many rows does one IN become better than many single selects?"
[corpus]
family = "table"
table = "data"
rows = 100_000
[operations.fetch]
key = "id"
[operations.fetch.methods.in]
sql = 'SELECT * FROM data WHERE id IN ([each ",": {id}]);'
[operations.fetch.methods.singles]      # or file = "singles.sql"
sql = '''
-- @each @prepared
SELECT * FROM data WHERE id = {id};
'''
[systems.mariadb]
[systems.postgresql]
[factors]
"operations.fetch.rows" = [1, 10, 100, 1000]
```

[OPERATIONS.md](OPERATIONS.md) leads from files of SQL to a report, and lists all marks and
placeholders.

## Roles: what goes on beside the readers

`[queries]` and `[load]` are the readers. Each `[roles.NAME]` is another client of the same trial,
with a load, a thread and connections of its own. It asks queries of its own, writes documents,
publishes what was written, or has a job of the engine done. A writer has one rate, or one that
changes over the drive (`stages`, the `times` of a file). A fault is a role too: at a given time a
process of the system is killed, stopped or frozen, and later brought back. Any key of a role except
`does` may be a factor. A role that is `idle`, or whose rate is 0, does nothing, and the others are
compared with it:

```toml
[roles.writer]
does = "write"
share = 0.2               # one document in five is kept back, to be inserted later
insert = 8                # of ten changes: eight inserts, one update, one delete
update = 1
delete = 1

[roles.publisher]
does = "publish"
every_s = 10

[load]
clients = 4
warmup_s = 5
seconds = 60

[factors]
"roles.writer.documents_per_s" = [0, 10, 100]
```

With `find_capacity` in `[load]`, the capacity of the readers is searched for with and without the
roles. [ROLES.md](ROLES.md) leads from your own rate of updates to a report.

A role that reads (`does = "read"`) has queries of its own, with the keys of `[queries]`, in
`[roles.NAME.queries]`. It has one pace: `clients` in a closed loop, `rate_per_s`, `stages`,
`every_s`, the `times` of a file, or, with `speed` alone, the times of its own log:

```toml
[roles.reports]
does = "read"

[roles.reports.queries]
file = "reports.txt"

[factors]
"roles.reports.clients" = [0, 1]
```
"""


_SYSTEMS = """\
The other keys are the engine's parameters. Those marked ● change the index: each level of one needs
an ingest of its own.

An attached system keeps its own settings. If they differ from the study's, the report says so. For
OpenSearch and Elasticsearch, set `nodes` to the number of nodes in the cluster, or to a smaller one
(at most 5). The status of the cluster has to be green. With [requests], neither the number of nodes
nor the status matters.

**For a system in production, always set `[ingest] index = "as-found"`** (this requires that all
systems of the study are attached). Documents are then neither counted nor put in. Without it,
searchbench counts the documents of its own table or index (`docs`; `Docs` in Groonga), and what
happens depends on their number:

- as many as the corpus has: they are assumed to be the corpus;
- none, or there is no such table or index: it is made and the corpus is put in, even if the system
  holds other data;
- any other number: the trial fails.

A NAME may contain any characters except control characters, `*` and `=`. Quote it if it contains
anything but letters, digits, `-` and `_`. User and database come from the URL if it names them,
else from SEARCHBENCH_NAME_USER and SEARCHBENCH_NAME_DATABASE (NAME in capitals, `-` as `_`), else
from SEARCHBENCH_USER and SEARCHBENCH_DATABASE. The password comes from SEARCHBENCH_NAME_PASSWORD or
SEARCHBENCH_PASSWORD; it must not be part of the URL.
"""

_INGEST = (
    "How documents are put in. `batch` and `connections` may be factors. Some engines also have a "
    "parameter `door`, which chooses the statement that puts documents in."
)
_STORAGES = (
    "A storage has one of `filesystem`, `directory` and `ram`. The limits (from `like` on) slow "
    "down the device below an ext4, xfs or btrfs that searchbench makes."
)

_KINDS = {str: "a string", int: "an integer", float: "a number"}


def reference() -> str:
    """The whole page."""
    parts = [
        _HEAD,
        _section("At the top", "Keys that stand before all tables.", TOP_KEYS),
        _section(
            "[corpus]",
            "Where documents come from. A key that only some families take has "
            "their names in parentheses.",
            corpora.SPEC_KEYS,
        ),
        _section("[queries]", "What is asked.", registry.SPEC_KEYS),
        _section(
            "[requests]", "What is sent as it is, in place of [corpus] and [queries].", REQUEST_KEYS
        ),
        _section("[operations.NAME]", "What is asked in the systems' own words.", OPERATION_KEYS),
        _section("[operations.NAME.methods.NAME]", "One way to answer it.", METHOD_KEYS),
        _section("[load]", "How requests are sent, and when.", LOAD_KEYS),
        _section("[load.stages]", "Stages from a log, where `stages` is a table.", CURVE_KEYS),
        _section("[roles.NAME]", "What goes on beside the readers.", ROLE_KEYS),
        _section("[ingest]", _INGEST, (*INGEST_KEYS, *PUT_IN_KEYS)),
        _section("[control]", "How noise is measured.", CONTROL_KEYS),
        _section("[agreement]", "How answers are compared.", AGREEMENT_KEYS),
        _section("[verdict]", "Which metric decides.", VERDICT_KEYS),
        _section("[places.NAME]", _places(), PLACE_KEYS),
        _section("[hosts.NAME]", _hosts(), HOST_KEYS),
        _section("[storages.NAME]", _STORAGES, STORAGE_KEYS),
        _section("[systems.NAME]", _SYSTEMS, SYSTEM_KEYS),
        *map(_engine, ENGINES.values()),
    ]
    return "".join(parts)


def _places() -> str:
    """Which engines can lay which files apart, as they declare it."""
    apart = {
        kind: ", ".join(name for name, engine in ENGINES.items() if kind in engine.can.writes)
        for kind in FILES
        if kind != "data"
    }
    can = ", ".join(f"`{kind}` ({names})" for kind, names in apart.items())
    return (
        "Where systems run, and where their files are kept. Some engines can keep a kind of file "
        f"on a storage of its own: {can}."
    )


def _hosts() -> str:
    """Which engines can be on one."""
    able = ", ".join(name for name, engine in ENGINES.items() if engine.can.on_hosts)
    return (
        "Network namespaces of this machine that act as hosts, and machines that are reached by "
        f"ssh. These engines can be on one: {able}."
    )


def _section(title: str, intro: str, keys: Iterable[SpecKey]) -> str:
    rows = []
    for key in keys:
        if getattr(key, "given", False):
            continue
        families = getattr(key, "families", ())
        only = f" ({', '.join(families)})" if 0 < len(families) < len(corpora.FAMILIES) else ""
        default = "" if key.default in (None, (), "") else f"`{show(key.default)}`"
        rows.append((key.name, _cell(key.expected()), default, _cell(key.doc + only)))
    return f"\n## {title}\n" + (f"\n{intro}\n" if intro else "") + _table("key", rows)


def _engine(engine: Engine) -> str:
    rows = [
        (
            p.name,
            _values(p),
            f"`{show(p.default)}`" if p.default != "" else "",
            _cell(p.doc) + (" ●" if p.index else ""),
        )
        for p in engine.parameters
    ]
    return f"\n### {engine.name}\n" + _table("parameter", rows) + _jobs(engine)


def _jobs(engine: Engine) -> str:
    """Its jobs with their levers; only names where it has no other jobs than all have."""
    if set(engine.jobs) <= {INGEST, OPENING}:
        names = " and ".join(f"`{job.name}`" for job in engine.jobs)
        return f"\nJobs: {names}.\n" if len(engine.jobs) > 1 else f"\nJob: {names}.\n"
    rows = []
    for job in engine.jobs:
        rows.append((job.name, "", "", _cell(job.doc)))
        rows += [
            (f"{job.name}.{p.name}", _values(p), f"`{show(p.default)}`", _cell(p.doc))
            for p in job.parameters
        ]
    return _table("job", rows)


def _table(what: str, rows: Iterable[tuple[str, str, str, str]]) -> str:
    """``rows``: name, values, default, meaning."""
    head = f"\n| {what} | values | default | meaning |\n|---|---|---|---|\n"
    return head + "".join(f"| `{name}` | {' | '.join(cells)} |\n" for name, *cells in rows)


def _values(lever: Parameter) -> str:
    if lever.choices:
        return ", ".join(f"`{show(choice)}`" for choice in lever.choices)
    if lever.counts:
        return _cell(spec_of(lever).expected())
    if lever.minimum is not None and lever.maximum is not None:
        return f"{_number(lever.minimum)} to {_number(lever.maximum)}"
    return "`true` or `false`" if lever.kind is bool else _KINDS[lever.kind]


def _number(bound: float) -> str:
    return str(int(bound)) if bound == int(bound) else f"{bound:.12g}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    sys.stdout.write(reference())
