"""TLS: which authorities the client trusts, and which certificate it presents."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import httpx


class UnusableFile(Exception):
    """A file of certificates or keys that cannot be used: which setting names it, why, and what to do."""

    def __init__(self, setting: str, what: str, remedy: str) -> None:
        super().__init__(f"{setting}: {what}")
        self.setting = setting
        self.what = what
        self.remedy = remedy


class TLSContext:
    """The TLS context of a client, made when it is first needed: loading the authorities takes some 10 ms.

    Args:
        verify: as httpx takes it: True for the usual authorities (certifi, or SSL_CERT_FILE), or a context.
    """

    def __init__(self, verify: ssl.SSLContext | bool) -> None:
        self._verify = verify

    @cached_property
    def context(self) -> ssl.SSLContext:
        """The context."""
        if isinstance(self._verify, ssl.SSLContext):
            return self._verify
        context = httpx.create_ssl_context(self._verify)
        context.set_alpn_protocols(["http/1.1"])  # aiohttp speaks no HTTP/2, which httpx offers too
        return context


def make_context(
    environ: Mapping[str, str],
    *,
    ca_file: Path | None = None,
    client_cert: Path | None = None,
    client_key: Path | None = None,
) -> ssl.SSLContext:
    """Make a client's TLS context for HTTP/1.1. Reads files, so it blocks.

    Args:
        environ: SSL_CERT_FILE and SSL_CERT_DIR replace the usual authorities (certifi's).
        ca_file: authorities to trust in addition, as PEM.
        client_cert: the certificate to present to a server that asks for one, as PEM.
        client_key: its key; None if it is in the same file.

    Raises:
        UnusableFile: one of the files cannot be read, or does not contain what it should.
    """
    context = _usual_context(environ)
    if ca_file:
        _trust(context, ca_file, "api.ca_file")
    if client_cert:
        _present(context, client_cert, client_key)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _usual_context(environ: Mapping[str, str]) -> ssl.SSLContext:
    file, folder = environ.get("SSL_CERT_FILE"), environ.get("SSL_CERT_DIR")
    if not file and not folder:
        return httpx.create_ssl_context(trust_env=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if file:
        _trust(context, Path(file), "SSL_CERT_FILE")
    if folder:
        context.load_verify_locations(capath=folder)
    return context


def _trust(context: ssl.SSLContext, path: Path, setting: str) -> None:
    try:
        context.load_verify_locations(cafile=path)
    except ssl.SSLError:
        what = f"{path} contains no certificate that can be read"
        raise UnusableFile(setting, what, "it must be PEM: -----BEGIN CERTIFICATE-----") from None
    except OSError as error:
        raise _unreadable(setting, path, error) from None


def _present(context: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    for setting, path in {"api.client_cert": certificate, "api.client_key": key}.items():
        try:
            if path:
                path.open("rb").close()
        except OSError as error:
            raise _unreadable(setting, path, error) from None
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")  # without it OpenSSL would ask on the terminal
    except (ssl.SSLError, ValueError):
        what = (
            f"{certificate} and {key or 'the key in it'} are not a certificate and its key, or the key has a password"
        )
        remedy = "use PEM files; the key must have no password, and is in the same file or in [api] client_key"
        raise UnusableFile("api.client_cert", what, remedy) from None


def _unreadable(setting: str, path: Path | None, error: OSError) -> UnusableFile:
    return UnusableFile(setting, f"{path} cannot be read: {error.strerror}", "check that the file is there")
