"""Whom the wire trusts and how it shows itself: authorities, and a certificate of one's own."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

import httpx


class UnusableFile(Exception):
    """A file of certificates or keys that cannot be used: which setting named it, why, what to do."""

    def __init__(self, setting: str, what: str, remedy: str) -> None:
        super().__init__(f"{setting}: {what}")
        self.setting = setting
        self.what = what
        self.remedy = remedy


def make_context(
    environ: Mapping[str, str],
    *,
    ca_file: Path | None = None,
    client_cert: Path | None = None,
    client_key: Path | None = None,
) -> ssl.SSLContext:
    """A client's context for HTTP/1.1. Reads files: blocks.

    Args:
        environ: SSL_CERT_FILE and SSL_CERT_DIR name other authorities than the usual ones (certifi's).
        ca_file: authorities that are trusted beside them, as PEM.
        client_cert: the certificate that is shown to a server that asks for one, as PEM.
        client_key: its key; None: it is in the same file.

    Raises:
        UnusableFile: one of them cannot be read, or does not hold what it should.
    """
    context = _usual(environ)
    if ca_file:
        _trust(context, ca_file, "api.ca_file")
    if client_cert:
        _show(context, client_cert, client_key)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _usual(environ: Mapping[str, str]) -> ssl.SSLContext:
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
        what = f"{path} holds no certificate that can be read"
        raise UnusableFile(setting, what, "it must be PEM: -----BEGIN CERTIFICATE-----") from None
    except OSError as error:
        raise _unreadable(setting, path, error) from None


def _show(context: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    for setting, path in {"api.client_cert": certificate, "api.client_key": key}.items():
        try:
            if path:
                path.open("rb").close()
        except OSError as error:
            raise _unreadable(setting, path, error) from None
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")  # or OpenSSL would ask on the terminal
    except (ssl.SSLError, ValueError):
        what = f"{certificate} and {key or 'the key in it'} are no certificate with its key, or the key has a password"
        remedy = "PEM, the key without a password: in the same file, or in [api] client_key"
        raise UnusableFile("api.client_cert", what, remedy) from None


def _unreadable(setting: str, path: Path | None, error: OSError) -> UnusableFile:
    return UnusableFile(setting, f"{path} cannot be read: {error.strerror}", "see that the file is there")
