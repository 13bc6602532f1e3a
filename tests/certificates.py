"""Certificates for tests, made by openssl: an authority, and what it signs."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_CONFIG = """
[ca]
default_ca = ours
[ours]
database = index.txt
new_certs_dir = .
serial = serial
default_md = sha256
unique_subject = no
policy = any
copy_extensions = copy
[any]
commonName = supplied
"""
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, both PEM."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates; ``cert`` is its own."""

    def __init__(self, place: Path, name: str = "ours") -> None:
        place.mkdir()
        self.place, self.cert = place, place / "ca.pem"
        (place / "ca.cnf").write_text(_CONFIG)
        (place / "index.txt").touch()
        (place / "serial").write_text("01\n")
        self._run("req", "-x509", *_KEY, "-keyout", "ca.key", "-out", "ca.pem", "-subj",
                  f"/CN={name}")  # fmt: skip

    def sign(
        self,
        name: str,
        alternatives: str = "DNS:localhost,IP:127.0.0.1",
        *,
        until: str = "20990101000000Z",
    ) -> Pair:
        """A certificate for these names, valid from 2020 on."""
        pair = Pair(self.place / f"{name}.pem", self.place / f"{name}.key")
        self._run("req", *_KEY, "-keyout", pair.key.name, "-out", f"{name}.csr", "-subj",
                  f"/CN={name}", "-addext", f"subjectAltName={alternatives}")  # fmt: skip
        self._run("ca", "-batch", "-config", "ca.cnf", "-cert", "ca.pem", "-keyfile", "ca.key",
                  "-in", f"{name}.csr", "-out", pair.cert.name, "-notext",
                  "-startdate", "20200101000000Z", "-enddate", until)  # fmt: skip
        return pair

    def _run(self, *argv: str) -> None:
        done = subprocess.run(["openssl", *argv], cwd=self.place, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()


def self_signed(place: Path, name: str = "alone") -> Pair:
    """A certificate that nobody else signed, as `openssl req -x509` makes it."""
    pair = Pair(place / f"{name}.pem", place / f"{name}.key")
    argv = ["openssl", "req", "-x509", *_KEY, "-keyout", str(pair.key), "-out", str(pair.cert),
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]  # fmt: skip
    subprocess.run(argv, capture_output=True, check=True)
    return pair
