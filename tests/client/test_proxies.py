"""Through which proxy a URL goes."""

from __future__ import annotations

from base64 import b64encode

import httpx
import pytest

from rowcall.client.proxies import Proxies, UnusableProxy, parse_proxy


def of(url, configured=None, **environ):
    proxy = Proxies(configured, environ).of(httpx.URL(url))
    return proxy and proxy.url


ENV = {"HTTP_PROXY": "http://plain:1", "HTTPS_PROXY": "secure:2", "NO_PROXY": "spared.test, .dom.test,10.0.0.0/8"}


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://a.test/x", "http://plain:1"),
        ("https://a.test/x", "http://secure:2"),
        ("https://spared.test/", None),
        ("https://sub.spared.test/", None),
        ("https://unspared.test/", "http://secure:2"),
        ("https://a.dom.test/", None),
        ("http://10.1.2.3/", None),
        ("http://11.1.2.3/", "http://plain:1"),
        ("http://127.0.0.1:8080/", None),
        ("http://localhost/", None),
        ("http://[::1]/", None),
    ],
)
def test_the_environment_by_scheme_and_host(url, proxy):
    """HTTPS_PROXY and HTTP_PROXY, but for the hosts of NO_PROXY and this machine."""
    assert of(url, **ENV) == proxy


def test_all_proxy_and_lower_case():
    """ALL_PROXY is for what has none of its own; lower case goes before upper; a blank one is none."""
    assert of("http://a.test", ALL_PROXY="http://all:3") == "http://all:3"
    assert of("http://a.test", ALL_PROXY="http://all:3", http_proxy="http://own:4") == "http://own:4"
    assert of("http://a.test", HTTP_PROXY="http://up:5", http_proxy="http://low:6") == "http://low:6"
    assert of("http://a.test", HTTP_PROXY=" ") is None


@pytest.mark.parametrize(
    ("entry", "spared"),
    [("*", True), ("*.test", True), ("a.test:443", True), ("a.test:80", False), ("b.test", False), ("test", True)],
)
def test_no_proxy(entry, spared):
    """A star, domains and ports."""
    assert (of("https://a.test/", https_proxy="http://p:1", no_proxy=entry) is None) == spared


def test_a_configured_proxy_goes_before():
    """It is for every host, this machine too; ``none`` is none."""
    assert of("http://127.0.0.1/", "http://own:1", **ENV) == "http://own:1"
    assert of("http://spared.test/", "http://own:1", **ENV) == "http://own:1"
    assert of("http://a.test/", "none", **ENV) is None


def test_credentials_are_never_shown():
    """They go out decoded as Basic, and stand in no repr."""
    proxy = parse_proxy("http://me%40corp:p%3Ass@proxy.test:3128", "HTTPS_PROXY")
    assert proxy.authorization == "Basic " + b64encode(b"me@corp:p:ss").decode()
    assert proxy.url == "http://proxy.test:3128"
    assert "corp" not in repr(proxy)
    assert "Basic" not in repr(proxy)


@pytest.mark.parametrize("url", ["ftp://p:1", "http://", "http://me:secret@p:no-port"])
def test_a_proxy_that_is_none_is_refused(url):
    """The message names the variable, never the URL."""
    with pytest.raises(UnusableProxy, match=r"^HTTP_PROXY: is not the URL of a proxy$"):
        parse_proxy(url, "HTTP_PROXY")


def test_socks_is_refused():
    """With what to do about it."""
    with pytest.raises(UnusableProxy, match="ALL_PROXY: SOCKS proxies are not supported") as caught:
        of("http://a.test", ALL_PROXY="socks5h://me:secret@p:1080")
    assert 'proxy = "none"' in caught.value.remedy
    assert "secret" not in str(caught.value)
    assert of("http://a.test", ALL_PROXY="socks5://p:1080", NO_PROXY="a.test") is None
