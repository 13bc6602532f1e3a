"""TLS, credentials and compression, against servers with certificates that are made here."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certificates import Authority, Pair, self_signed
from searchbench import _core
from searchbench.analysis.judge import judge
from searchbench.cli import app
from searchbench.engines import ENGINES, defaults
from searchbench.engines.engine import Service
from searchbench.errors import LabError, SearchbenchError
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.measure.load import Asked, load, study_of
from searchbench.measure.run import run as run_study
from searchbench.record import Record, open_record
from web import BODY, free_port, nginx, until_it_listens

pytestmark = pytest.mark.skipif(
    shutil.which("nginx") is None or shutil.which("openssl") is None,
    reason="nginx and openssl are needed",
)

SECRET = "s3cr3t-t0ken"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls") / "ca")


@pytest.fixture(scope="module")
def good(authority: Authority) -> Pair:
    return authority.sign("good")


def driven(place: Path, url: str, **how: Any) -> Record:
    how = {"clients": 2, "seconds": 0.3, "warmup": 0.0, "captures": 1, "timeout": 2.0, **how}
    return load(url, record=place / "record", **how)


def outcomes(record: Record) -> Counter[str]:
    (trial,) = record.trials
    codes = record.samples(trial.trial).column("outcome").to_pylist()
    return Counter(_core.OUTCOMES[code] for code in codes)


def contents(record: Record) -> list[bytes]:
    return [path.read_bytes() for path in record.path.rglob("*") if path.is_file()]


def test_a_closed_loop_over_tls(tmp_path: Path, authority: Authority, good: Pair) -> None:
    with nginx(tmp_path / "web", good) as web:
        record = driven(tmp_path, web.url, ca=authority.cert, clients=3)
        seen = web.seen()
    assert set(outcomes(record)) == {"ok"}
    (trial,) = record.trials
    drive = trial.drive
    assert (drive.connects, drive.reconnects, drive.handshakes) == (3, 0, 3)
    assert drive.tls.startswith("TLSv1_3 TLS13_")
    assert trial.attached == web.url.removesuffix("/body.txt") + "/body.txt"
    assert {(line["sni"], line["scheme"]) for line in seen} == {("localhost", "https")}
    assert {line["host"] for line in seen} == {f"localhost:{web.port}"}
    assert not [n for n in trial.notes if "certificate" in n.kind]


def test_handshakes_are_part_of_connect_time_and_those_resumed_are_counted(
    tmp_path: Path, authority: Authority, good: Pair
) -> None:
    with nginx(tmp_path / "web", good, "keepalive_timeout 0;") as web:
        record = driven(
            tmp_path, web.url, ca=authority.cert, clients=None, rate=150, connections=8,
            seconds=0.6,
        )  # fmt: skip
        seen = web.seen()
    assert set(outcomes(record)) == {"ok"}
    (trial,) = record.trials
    drive = trial.drive
    # The drive may end while a connection is being opened.
    opened_in_all = drive.connects + drive.reconnects
    assert opened_in_all - 8 <= drive.handshakes <= opened_in_all
    assert drive.handshakes > len(seen) / 2
    # Beside the drive somebody asked who answers.
    resumed = sum(line["reused"] == "r" for line in seen)
    assert 0 < drive.resumed <= resumed + 8
    assert drive.resumed > 0.5 * drive.handshakes, "servers of TLS 1.3 hand out tickets"
    samples = record.samples(trial.trial).to_pandas()
    opened = samples[samples["connect"] >= 0]
    took_ns = np.array(opened["free"] - opened["connect"])
    assert len(took_ns) > 20
    assert np.median(took_ns) > 150_000, "a TCP connect takes far less"


def test_version_1_2_is_spoken_too(tmp_path: Path, authority: Authority, good: Pair) -> None:
    with nginx(tmp_path / "web", good, "ssl_protocols TLSv1.2;") as web:
        record = driven(tmp_path, web.url, ca=authority.cert)
    assert set(outcomes(record)) == {"ok"}
    assert record.trials[0].drive.tls.startswith("TLSv1_2 ")


def test_large_bodies_both_ways(tmp_path: Path, authority: Authority, good: Pair) -> None:
    big = "x" * 3_000_000
    ask = {"path": "/big.txt", "method": "POST", "body": "y" * 700_000}
    (tmp_path / "r.jsonl").write_text(json.dumps(ask) + "\n")
    more = "client_max_body_size 4m; error_page 405 =200 $uri;"
    with nginx(tmp_path / "web", good, more) as web:
        (web.place / "big.txt").write_text(big)
        url = f"https://localhost:{web.port}"
        record = driven(
            tmp_path, url, ca=authority.cert, requests=tmp_path / "r.jsonl", engine="none"
        )
    assert set(outcomes(record)) == {"ok"}
    sizes = record.samples(record.trials[0].trial).column("bytes").to_pylist()
    assert all(3_000_000 < size < 3_001_000 for size in sizes), sizes[:3]


def test_a_certificate_that_is_no_good_is_one_sentence_with_the_remedy(
    tmp_path: Path, authority: Authority, good: Pair
) -> None:
    expired = authority.sign("expired", until="20210101000000Z")
    other = authority.sign("other", "DNS:search.example")
    stranger = Authority(tmp_path / "stranger", "nobody").cert
    for pair, how, said in [
        (expired, {}, r"the certificate of localhost expired \d+ days ago: renew"),
        (other, {}, "not for localhost but for search.example: .*--server-name"),
        (good, {"ca": stranger}, "localhost is signed by nobody whom this machine trusts: .*--ca"),
        (good, {"ca": None}, "localhost is signed by nobody whom this machine trusts: .*--ca"),
    ]:
        with nginx(tmp_path / f"web-{pair.cert.stem}", pair) as web:
            with pytest.raises(LabError, match=said) as raised:
                driven(tmp_path, web.url, **{"ca": authority.cert, **how})
            assert "\n" not in str(raised.value)
        shutil.rmtree(tmp_path / "record", ignore_errors=True)


def test_a_name_that_is_not_the_hosts_can_be_said(tmp_path: Path, authority: Authority) -> None:
    with nginx(tmp_path / "web", authority.sign("elsewhere", "DNS:search.example")) as web:
        record = driven(tmp_path, web.url, ca=authority.cert, server_name="search.example")
        assert {line["sni"] for line in web.seen()} == {"search.example"}
    assert set(outcomes(record)) == {"ok"}


def test_a_certificate_that_signs_itself_is_trusted_where_it_is_given(tmp_path: Path) -> None:
    pair = self_signed(tmp_path)
    with nginx(tmp_path / "web", pair) as web:
        record = driven(tmp_path, web.url, ca=pair.cert)
        assert set(outcomes(record)) == {"ok"}
        (tmp_path / "second").mkdir()
        with pytest.raises(LabError, match=r"is not for 127\.0\.0\.1"):
            driven(tmp_path / "second", f"https://127.0.0.1:{web.port}/", ca=pair.cert)


def test_insecure_is_said_aloud_and_stays_on_record(
    tmp_path: Path, good: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    with nginx(tmp_path / "web", good) as web:
        told = ["load", web.url, "--insecure", "--seconds", "0.3", "--warmup", "0"]
        app([*told, "--record", str(tmp_path / "record")], result_action="return_value")
    screen = capsys.readouterr()
    assert "certificate not checked" in screen.out + screen.err
    record = open_record(tmp_path / "record")
    assert set(outcomes(record)) == {"ok"}
    assert "certificate not checked" in [note.kind for note in record.trials[0].notes]
    page = (tmp_path / "record" / "report" / "report.html").read_text()
    assert "ertificate not checked" in page
    assert "TLSv1_3" in page
    findings = [f for t in judge(record).treatments for x in t.trials for f in x.findings]
    assert "certificate not checked" in {f.kind for f in findings}


def test_plain_text_asked_for_tls_and_the_reverse_are_told_apart(
    tmp_path: Path, authority: Authority, good: Pair
) -> None:
    speaks = r"127\.0\.0\.1:\d+ speaks TLS, and was asked in plain text: write https://"
    with nginx(tmp_path / "web", good) as web, pytest.raises(LabError, match=speaks):
        driven(tmp_path / "a", f"http://localhost:{web.port}/")
    # One that says nothing in plain text.
    port = free_port()
    argv = ["openssl", "s_server", "-accept", str(port), "-cert", str(good.cert), "-key",
            str(good.key), "-www", "-quiet"]  # fmt: skip
    with until_it_listens(argv, port), pytest.raises(LabError, match=speaks):
        driven(tmp_path / "b", f"http://localhost:{port}/")
    argv = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port := free_port())]
    not_tls = r"localhost does not speak TLS; .*http:// in place of https://"
    with until_it_listens(argv, port), pytest.raises(LabError, match=not_tls):
        driven(tmp_path / "c", f"https://localhost:{port}/", ca=authority.cert)


def test_a_client_has_the_certificate_that_it_was_given(
    tmp_path: Path, authority: Authority, good: Pair
) -> None:
    ours = authority.sign("client")
    checked = f"ssl_verify_client on; ssl_client_certificate {authority.cert};"
    with nginx(tmp_path / "web", good, checked) as web:
        record = driven(tmp_path, web.url, ca=authority.cert, cert=ours.cert, key=ours.key)
        assert set(outcomes(record)) == {"ok"}
        assert ours.key.read_bytes().splitlines()[1] not in b"".join(contents(record))
    port = free_port()
    argv = ["openssl", "s_server", "-accept", str(port), "-cert", str(good.cert), "-key",
            str(good.key), "-www", "-Verify", "1", "-quiet"]  # fmt: skip
    wants = "localhost wants a certificate from its clients: give cert and key"
    with until_it_listens(argv, port), pytest.raises(LabError, match=wants):
        driven(tmp_path / "without", f"https://localhost:{port}/", ca=authority.cert)


def test_no_secret_is_on_record(
    tmp_path: Path, authority: Authority, good: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = {"path": "/body.txt", "headers": {"X-Key": SECRET, "Accept": "text/plain"}}
    (tmp_path / "r.jsonl").write_text(json.dumps(ask) + "\n")
    header = f"Authorization: Bearer {SECRET}"
    with nginx(tmp_path / "web", good) as web:
        url = f"https://localhost:{web.port}"
        argv = ["load", url, "--ca", str(authority.cert), "--header", header, "--seconds", "0.3",
                "--requests", str(tmp_path / "r.jsonl"), "--warmup", "0", "--header",
                "User-Agent: me/1", "--record", str(tmp_path / "record")]  # fmt: skip
        monkeypatch.setattr("sys.argv", ["searchbench", *argv])
        app(argv, result_action="return_value")
        assert {line["authorization"] for line in web.seen()} == {f"Bearer {SECRET}"}
        record = open_record(tmp_path / "record")
        assert set(outcomes(record)) == {"ok"}
        assert not any(SECRET.encode() in content for content in contents(record))
        study = (tmp_path / "record" / "study.toml").read_text()
        assert "Authorization: Bearer" not in study
        assert "User-Agent: me/1" in study
        assert "${SEARCHBENCH_HEADER_AUTHORIZATION}" in study
        # Another process has the value from the environment, or is told that it needs it.
        monkeypatch.setattr("searchbench.lab.system.credentials._given", {})
        again = ["run", str(tmp_path / "record" / "study.toml"), "--no-report", "--record"]
        with pytest.raises(LabError, match="variable SEARCHBENCH_HEADER_AUTHORIZATION, which is"):
            app([*again, str(tmp_path / "again")], result_action="return_value")
        monkeypatch.setenv("SEARCHBENCH_HEADER_AUTHORIZATION", f"Bearer {SECRET}")
        # On a busy machine its one trial may be invalid, and that is 1.
        assert app([*again, str(tmp_path / "more")], result_action="return_value") in (0, 1)


@pytest.mark.parametrize(
    ("variables", "sent"),
    [
        ({"SEARCHBENCH_BEARER": SECRET}, f"Bearer {SECRET}"),
        ({"SEARCHBENCH_API_KEY": SECRET}, f"ApiKey {SECRET}"),
        ({"SEARCHBENCH_USER": "u", "SEARCHBENCH_PASSWORD": "p"}, "Basic dTpw"),
    ],
)
def test_credentials_of_the_environment(
    variables: dict[str, str], sent: str, tmp_path: Path, authority: Authority, good: Pair,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with nginx(tmp_path / "web", good) as web:
        record = driven(tmp_path, web.url, ca=authority.cert, captures=0, seconds=0.1)
        assert {line["authorization"] for line in web.seen()} == {sent}
    word = sent.split()[1].encode()
    assert not any(word in content for content in contents(record))


def test_replies_in_gzip_are_counted_as_they_were_sent(
    tmp_path: Path, authority: Authority, good: Pair
) -> None:
    with nginx(tmp_path / "web", good) as web:
        plain = driven(tmp_path / "plain", web.url, ca=authority.cert)
        packed = driven(tmp_path / "packed", web.url, ca=authority.cert, compressed=True)
    (first,), (second,) = plain.trials, packed.trials
    whole = plain.samples(first.trial).column("bytes")[0].as_py()
    small = packed.samples(second.trial).column("bytes")[0].as_py()
    assert len(BODY) < whole < len(BODY) + 500
    assert small < 600
    assert set(outcomes(packed)) == {"ok"}


STUDY = """
question = "How fast is the one behind the door?"
replicates = 1
[corpus]
files = "documents.jsonl"
fields = {{ text = "text" }}
[queries]
file = "queries.txt"
[systems.ours]
engine = "groonga"
attach = "https://localhost:{port}"
ca = "{ca}"
headers = "Authorization: Bearer ${{THE_TOKEN}}"
{more}
[load]
seconds = 0.3
warmup_s = 0.0
[control]
aa = false
"""


def test_a_study_of_a_secured_system_ingests_asks_and_drives_with_the_same_keys(
    tmp_path: Path, authority: Authority, good: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = ENGINES["groonga"]
    if lacking := missing(engine):
        pytest.skip(f"no groonga here: {lacking}")
    monkeypatch.setenv("THE_TOKEN", SECRET)
    lines = [f'{{"id": "{n}", "text": "red fox {n}"}}' for n in range(6)]
    (tmp_path / "documents.jsonl").write_text("\n".join(lines))
    (tmp_path / "queries.txt").write_text("red\nfox 1\n")
    with Deployment(engine, defaults(engine), tmp_path / "data", tmp_path / "run") as server:
        door = (
            f'if ($http_authorization != "Bearer {SECRET}") {{ return 401; }} '
            f"location / {{ proxy_pass http://127.0.0.1:{server.target[1]}; }}"
        )
        with nginx(tmp_path / "web", good, door) as web:
            for more, name in (("", "whole"), ("compressed = true", "packed")):
                text = STUDY.format(port=web.port, ca=authority.cert, more=more)
                (tmp_path / "study.toml").write_text(text)
                record = run_study(tmp_path / "study.toml", tmp_path / name)
                (trial,) = record.trials
                assert trial.status == "ok", trial
                assert set(outcomes(record)) == {"ok"}
                assert record.replies(trial.trial)["total"].to_pylist()[:2] == [6, 1]
                assert not any(SECRET.encode() in content for content in contents(record))
            assert {line["authorization"] for line in web.seen()} == {f"Bearer {SECRET}"}


class Secured:
    """An engine that is started with TLS."""

    def __init__(self, name: str, *argv: str) -> None:
        self.engine, self.more = ENGINES[name], argv

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def service(self, *args: Any) -> Service:
        service = self.engine.service(*args)
        return replace(service, argv=(*service.argv, *self.more))


@pytest.mark.parametrize("name", ["mariadb", "postgresql"])
def test_databases_are_asked_over_tls(
    name: str, tmp_path: Path, authority: Authority, good: Pair
) -> None:
    if lacking := missing(ENGINES[name]):
        pytest.skip(f"no {name} here: {lacking}")
    scheme, options = {
        "mariadb": ("mysql", (f"--ssl-cert={good.cert}", f"--ssl-key={good.key}")),
        "postgresql": ("postgres", ("-c", "ssl=on", "-c", f"ssl_cert_file={good.cert}", "-c",
                                    f"ssl_key_file={good.key}")),
    }[name]  # fmt: skip
    (tmp_path / "q.sql").write_text("select 1;\nselect 'two';\n")
    engine = Secured(name, *options)
    with Deployment(engine, defaults(engine), tmp_path / "data", tmp_path / "run") as server:  # type: ignore[arg-type]
        user, _, database = server.endpoint.login or ("", "", "")
        at = f"{user + '@' if user else ''}localhost:{server.target[1]}/{database}"
        how = {"requests": tmp_path / "q.sql", "ca": authority.cert}
        record = driven(tmp_path, f"{scheme}+tls://{at}", **how)
        assert set(outcomes(record)) == {"ok"}
        (trial,) = record.trials
        assert trial.drive.handshakes == trial.drive.connects == 2
        assert "TLSv1_3" in trial.drive.tls
        assert trial.engine == name
        (tmp_path / "b").mkdir()
        with pytest.raises(LabError, match="signed by nobody"):
            driven(tmp_path / "b", f"{scheme}+tls://{at}", requests=tmp_path / "q.sql")


def test_a_database_without_tls_says_so(tmp_path: Path, authority: Authority) -> None:
    engine = ENGINES["postgresql"]
    if lacking := missing(engine):
        pytest.skip(f"no postgresql here: {lacking}")
    (tmp_path / "q.sql").write_text("select 1;\n")
    with Deployment(engine, defaults(engine), tmp_path / "data", tmp_path / "run") as server:
        url = f"postgres+tls://localhost:{server.target[1]}/"
        with pytest.raises(LabError, match=r"offers no TLS: .*postgres://"):
            driven(tmp_path, url, requests=tmp_path / "q.sql", ca=authority.cert)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ca": "x.pem"}, "`ca` is about TLS, and http://127.0.0.1/ is asked in plain text"),
        (
            {"insecure": True, "url": "mysql://127.0.0.1/", "requests": "q.sql"},
            "`insecure` is about TLS",
        ),
        ({"cert": "x.pem", "url": "https://127.0.0.1/"}, "`cert` goes with `key`"),
        ({"ca": "x", "insecure": True, "url": "https://127.0.0.1/"}, "`insecure` accepts any"),
        ({"header": ["nonsense"]}, "a header is written 'Name: value'"),
        (
            {"header": ["A: b"], "url": "mysql://127.0.0.1/", "requests": "q.sql"},
            "`headers` is about HTTP",
        ),
        ({"url": "sphinx+tls://127.0.0.1/"}, "is not spoken"),
    ],
)
def test_options_that_do_not_fit_are_told_why(options: dict[str, Any], said: str) -> None:
    options = dict(options)
    with pytest.raises(SearchbenchError, match=said):
        study_of(Asked(targets=(options.pop("url", "http://127.0.0.1/"),), **options))


def test_a_file_or_a_variable_that_is_not_there_is_named(tmp_path: Path) -> None:
    for how, said in [
        ({"ca": tmp_path / "none.pem"}, r"`ca`: .*none\.pem cannot be read: No such file"),
        (
            {"insecure": True, "header": ["A: ${NOT_SET_HERE}"]},
            "variable NOT_SET_HERE, which is not",
        ),
        ({"ca": Path(__file__)}, "`ca` has no certificate in PEM"),
    ]:
        with socket.create_server(("127.0.0.1", 0)) as there, pytest.raises(LabError, match=said):
            driven(tmp_path, f"https://localhost:{there.getsockname()[1]}/", **how)
        shutil.rmtree(tmp_path / "record", ignore_errors=True)


def test_client_machines_have_the_same_keys(
    tmp_path: Path, authority: Authority, good: Pair
) -> None:
    ours = authority.sign("fleet")
    checked = f"ssl_verify_client on; ssl_client_certificate {authority.cert};"
    with nginx(tmp_path / "web", good, checked) as web:
        how = {"ca": authority.cert, "cert": ours.cert, "key": ours.key, "machines": "localhost"}
        record = driven(tmp_path, web.url, header=[f"Authorization: Bearer {SECRET}"], **how)
        assert {line["authorization"] for line in web.seen()} == {f"Bearer {SECRET}"}
    assert set(outcomes(record)) == {"ok"}
    drive = record.trials[0].drive
    assert drive.handshakes == 2
    assert drive.tls.startswith("TLSv1_3")
    assert not any(SECRET.encode() in content for content in contents(record))
