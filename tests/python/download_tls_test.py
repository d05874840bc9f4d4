"""`download` over TLS, with certificates that the system does not know, and
through proxies."""

import shutil
import ssl
import subprocess

import pytest
from download_test import (  # noqa: F401
    SHARD, clean_environment, download, expect_all, expect_error, files, hub)
from fake_hub import Hub, Server
from mlxcel_program import needs_program

pytestmark = [needs_program, pytest.mark.skipif(
    shutil.which("openssl") is None, reason="no openssl to make certificates")]


def certificate(folder, name, address="IP:127.0.0.1"):
    key, pem = folder / f"{name}.key", folder / f"{name}.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", pem,
         "-days", "2", "-subj", f"/CN={name}",
         "-addext", f"subjectAltName={address}"],
        check=True, capture_output=True, timeout=30)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    return pem, context


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("tls"), "ours")


@pytest.fixture
def secure(ours):
    with Hub(files(), [SHARD], context=ours[1]) as server:
        yield server


def test_an_unknown_certificate_is_refused(secure, tmp_path):
    result = download(secure, tmp_path, HF_TOKEN="t")
    expect_error(result, "certificate")
    assert "trying again" not in result.err and secure.log == []


def test_extra_certificates(secure, tmp_path, ours):
    other = certificate(tmp_path, "other")[0]
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(b"a comment\n" + other.read_bytes() +
                       ours[0].read_bytes())
    result = download(secure, tmp_path, HF_TOKEN="t",
                      MLXCEL_EXTRA_CA_CERTS=str(bundle))
    assert result.status == 0, result.err
    assert all(request.headers["authorization"] == "Bearer t"
               for request in secure.log)
    expect_all(secure, tmp_path)


def test_a_certificate_of_another_host(tmp_path):
    pem, context = certificate(tmp_path, "elsewhere", "DNS:example.com")
    with Hub(files(), context=context) as server:
        expect_error(download(server, tmp_path,
                              MLXCEL_EXTRA_CA_CERTS=str(pem)), "127.0.0.1")
        assert server.log == []


@pytest.mark.parametrize("content,parts", [
    (None, ["missing.pem"]), (b"", ["holds no certificate"]),
    (b"nothing", ["holds no certificate"]),
    (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
     ["PEM"]),
    (b"-----BEGIN CERTIFICATE-----\n", ["PEM"]),
    (b"#" * ((1 << 20) + 1), ["1048576"]),
])
def test_extra_certificates_that_are_none(hub, tmp_path, content, parts):
    bundle = tmp_path / "missing.pem"
    if content is not None:
        bundle.write_bytes(content)
    result = download(hub, tmp_path, MLXCEL_EXTRA_CA_CERTS=str(bundle))
    expect_error(result, "MLXCEL_EXTRA_CA_CERTS", str(bundle), *parts)
    assert hub.log == []


def test_a_redirect_out_of_tls(tmp_path, ours):
    with Hub(files(), [SHARD], context=ours[1], storage=True) as server:
        result = download(server, tmp_path, HF_TOKEN="t",
                          MLXCEL_EXTRA_CA_CERTS=str(ours[0]))
        expect_error(result, "no TLS")
        assert server.storage.log == []


class Proxy(Server):
    """Answers for the hub, whose name nobody else knows."""

    def serve(self, handler):
        handler.path = handler.path.removeprefix("http://hub.invalid")
        self.hub.answer(handler)


def test_a_proxy_of_the_environment(hub, tmp_path):
    proxy = Proxy()
    proxy.hub = hub
    try:
        result = download(
            hub, tmp_path, HF_ENDPOINT="http://hub.invalid",
            http_proxy=proxy.url.replace("//", "//user:word@"))
        assert result.status == 0, result.err
        assert len(proxy.log) == 4
        assert all(request.path.startswith("http://hub.invalid/")
                   and "proxy-authorization" in request.headers
                   for request in proxy.log)
        expect_all(hub, tmp_path)
        proxy.log.clear()
        assert download(hub, tmp_path, "--force", http_proxy=proxy.url,
                        no_proxy="127.0.0.1").status == 0
        assert proxy.log == []
    finally:
        proxy.close()
