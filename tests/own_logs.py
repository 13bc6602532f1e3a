"""Studies whose servers write their query logs, and the logs beside what the studies recorded.

The servers are those of the engines, with what a log needs added to their command lines and
configuration files. They run in another time zone than the client, as servers do.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from numpy.typing import NDArray

from searchbench.engines import ENGINES
from searchbench.engines.engine import Companion, Parameters, Service
from searchbench.engines.groonga import service as of_groonga
from searchbench.engines.opensearch import http as of_opensearch
from searchbench.engines.opensearch.levers import LOGGING as LOGGING_TO_CONSOLE
from searchbench.engines.sphinx import conf as of_sphinx
from searchbench.measure.run import run
from searchbench.record import Record
from searchbench.study import parse_study

ZONE = "Asia/Tokyo"
REQUESTS = 240
# Words that occur nowhere in what a server writes of its own.
WORD = re.compile(r"(?<![a-z])zz[a-z]+")
_OFTEN = [f"zz{a}{b}" for a in "bdfk" for b in ("a", "e", "o")]
_NEVER = "zznever"
_DOCUMENTS, _LENGTH = 1500, 30


def queries() -> list[dict[str, str]]:
    """Twenty queries of different words: cheap ones, dear ones, and two that find nothing."""
    found = [{"text": word, "match": "any"} for word in _OFTEN[:6]]
    found += [
        {"text": f"{a} {b}", "match": "all"} for a, b in zip(_OFTEN, _OFTEN[5:], strict=False)
    ]
    found += [{"text": " ".join(_OFTEN[:n]), "match": "any"} for n in (8, 9, 10, 11, 12)]
    return [
        *found,
        {"text": _NEVER, "match": "any"},
        {"text": f"{_NEVER} {_OFTEN[0]}", "match": "all"},
    ]


def study(place: Path, system: dict[str, Any]) -> Record:
    """Every query twelve times and more, through four connections; each once before, untimed."""
    place.mkdir(exist_ok=True)
    draw = np.random.default_rng(7)
    words = draw.choice(_OFTEN, (_DOCUMENTS, _LENGTH), p=_falling(len(_OFTEN)))
    texts = [" ".join(row) + f" {n}" for n, row in enumerate(words)]
    lines = [json.dumps({"id": str(n), "text": text}) for n, text in enumerate(texts)]
    (place / "documents.jsonl").write_text("\n".join(lines))
    at = np.round(np.cumsum(draw.exponential(0.012, REQUESTS)), 3)
    asked = queries()
    lines = [json.dumps({**asked[n % len(asked)], "t": float(t)}) for n, t in enumerate(at)]
    (place / "asked.jsonl").write_text("\n".join(lines))
    tables = {
        "question": "?",
        "replicates": 1,
        "control": {"aa": False},
        "corpus": {"files": "documents.jsonl", "fields": {"text": "text"}},
        "queries": {"file": "asked.jsonl"},
        "systems": {"it": system},
        "load": {"kind": "replay", "connections": 4, "timeout_s": 20.0},
    }
    return run(parse_study(tomli_w.dumps(tables), "s.toml", place), place / "record")


def _falling(n: int) -> NDArray[np.float64]:
    share: NDArray[np.float64] = 1.0 / np.arange(1, n + 1)
    share /= share.sum()
    return share


# ── what makes a server write a log ──────────────────────────────────────────────────────────

_Log = Callable[[Path], AbstractContextManager[None]]


@contextmanager
def _service(engine: str, change: Callable[[Service, Parameters], Service]) -> Iterator[None]:
    kind: Any = type(ENGINES[engine])
    plain = kind.service

    def service(self: Any, params: Parameters, schema: Any) -> Service:
        return change(plain(self, params, schema), params)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "service", service)
        yield


def _of_sphinx(form: str) -> _Log:
    @contextmanager
    def logging(place: Path) -> Iterator[None]:
        plain = of_sphinx._searchd
        keys = f"query_log = {place}/query.log\n  query_log_format = {form}\n  "

        def with_log(*given: Any) -> str:
            return plain(*given).replace("client_timeout", f"{keys}client_timeout")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(of_sphinx, "_searchd", with_log)
            yield

    return logging


def _of_mariadb(place: Path) -> AbstractContextManager[None]:
    options = (
        *("--slow-query-log=1", "--long-query-time=0", f"--slow-query-log-file={place}/slow.log"),
        *("--general-log=1", f"--general-log-file={place}/general.log"),
    )
    return _service("mariadb", lambda it, _: replace(it, argv=(*it.argv, *options)))


def _of_postgresql(place: Path) -> AbstractContextManager[None]:
    settings = {
        "logging_collector": "on",
        "log_destination": "stderr,csvlog,jsonlog",
        "log_directory": place,
        "log_filename": "postgresql.log",
        "log_min_duration_statement": "0",
        "log_line_prefix": "%m [%p] %u@%d ",
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return _service("postgresql", lambda it, _: replace(it, argv=(*it.argv, *options)))


_NGINX = """\
daemon off;
user root root;
pid {run}/front.pid;
error_log stderr warn;
events {
}
http {
  log_format timed '$remote_addr - $remote_user [$time_local] "$request" $status '
                   '$body_bytes_sent "$http_referer" "$http_user_agent" $request_time';
  log_format fields escape=json '{"time":"$time_iso8601","request":"$request",'
                   '"status":$status,"request_time":$request_time}';
  access_log PLACE/nginx-timed.log timed;
  access_log PLACE/nginx-fields.log fields;
  keepalive_timeout 3600s;
  keepalive_requests 1000000000;
  client_max_body_size 0;
  client_body_temp_path {run}/body;
  proxy_temp_path {run}/proxied;
  fastcgi_temp_path {run}/fastcgi;
  scgi_temp_path {run}/scgi;
  uwsgi_temp_path {run}/uwsgi;
  server {
    listen {address}:{port};
    location / {
      proxy_pass http://127.0.0.1:{port:behind};
      proxy_pass_header Server;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
}
"""


@contextmanager
def _of_groonga(place: Path) -> Iterator[None]:
    """Groonga's own server, behind nginx where that is here."""
    plain = of_groonga._groonga

    def with_log(*given: str) -> tuple[str, ...]:
        *argv, db = plain(*given)
        return (*argv, "--query-log-path", str(place / "query.log"), db)

    def front(it: Service, params: Parameters) -> Service:
        if not nginx():
            return it
        threads = str(params["threads"])
        own = with_log("127.0.0.1", "{port:behind}", threads, str(params["cache_limit"]))
        return replace(
            it,
            argv=("nginx", "-e", "stderr", "-c", "{run}/front.conf"),
            files={"front.conf": _NGINX.replace("PLACE", str(place))},
            companions=(Companion("behind", own),),
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_groonga, "_groonga", with_log)
        with _service("groonga", front):
            yield


def nginx() -> bool:
    """Whether nginx is here; servers look for it in more places than users."""
    return shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") is not None


_APPENDER = """
appender.NAME.type = File
appender.NAME.name = NAME
appender.NAME.fileName = PATH
appender.NAME.layout.type = """
_LOGGERS = """
logger.shards.name = index.search.slowlog
logger.shards.level = trace
logger.shards.additivity = false
logger.requests.name = cluster.search.request.slowlog
logger.requests.level = trace
logger.requests.additivity = false
"""
_PLAIN = """PatternLayout
appender.NAME.layout.pattern = [%d{ISO8601}][%-5p][%-25c{1.}] [%node_name]%marker %m%n
"""
_JSON = """OpenSearchJsonLayout
appender.NAME.layout.type_name = KIND_slowlog
appender.NAME.layout.opensearchmessagefields = """
_OF_SHARDS = "message,took,took_millis,total_hits,stats,search_type,total_shards,source,id\n"
_OF_REQUESTS = "took,took_millis,phase_took,total_hits,search_type,shards,source,id\n"
_ECS = """ECSJsonLayout
appender.NAME.layout.dataset = elasticsearch.index_search_slowlog
"""
# By file, the layout of what shards write, and of what is written of requests.
_OF_OPENSEARCH = {
    "slow.log": (_PLAIN, _PLAIN),
    "slow.json": (
        _JSON.replace("KIND", "index_search") + _OF_SHARDS,
        _JSON.replace("KIND", "search_request") + _OF_REQUESTS,
    ),
}
_OF_ELASTICSEARCH = {"slow.json": (_ECS, _ECS)}


def _of_rest(engine: str, layouts: dict[str, tuple[str, str]], node: dict[str, str]) -> _Log:
    @contextmanager
    def logging(place: Path) -> Iterator[None]:
        kind: Any = type(ENGINES[engine])
        settings, policy = dict(kind.settings), dict(kind.merge_policy)
        text = LOGGING_TO_CONSOLE + _LOGGERS
        for file, of_both in layouts.items():
            for logger, layout in zip(("shards", "requests"), of_both, strict=True):
                name = f"{logger}{file.replace('.', '')}"
                made = (_APPENDER + layout).replace("NAME", name)
                text += made.replace("PATH", str(place / file))
                text += f"logger.{logger}.appenderRef.{name}.ref = {name}\n"
        slow = {f"search.slowlog.threshold.{phase}.trace": "0ms" for phase in ("query", "fetch")}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(of_opensearch, "LOGGING", text)
            patch.setattr(kind, "settings", {**settings, **node})
            patch.setattr(kind, "merge_policy", {**policy, **slow})
            yield

    return logging


LOGGING: dict[str, tuple[str, _Log]] = {
    "sphinx": ("sphinx", _of_sphinx("plain")),
    "sphinxql": ("sphinx", _of_sphinx("sphinxql")),
    "mariadb": ("mariadb", _of_mariadb),
    "postgresql": ("postgresql", _of_postgresql),
    "groonga": ("groonga", _of_groonga),
    "opensearch": (
        "opensearch",
        _of_rest(
            "opensearch",
            _OF_OPENSEARCH,
            {
                "cluster.search.request.slowlog.level": "TRACE",
                "cluster.search.request.slowlog.threshold.trace": "0ms",
            },
        ),
    ),
    "elasticsearch": ("elasticsearch", _of_rest("elasticsearch", _OF_ELASTICSEARCH, {})),
}
"""The engine of each server that writes logs, and what makes it do so."""
