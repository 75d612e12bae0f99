"""Key stores: what a file is, is told from its content; certificates come in OpenSSL's order; every
fault has a sentence."""

from __future__ import annotations

import base64
import re
import ssl
import sys
from pathlib import Path

import pytest

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.security.key_stores import (
    Identity,
    PemBlock,
    identity,
    pem_of,
    split_pem,
    trusted_certificates,
)

DATA = Path(__file__).parents[1] / "data" / "security"
PASSWORD = "changeit"
TRUST, KEY = "ssl.truststore.location /etc/x", "ssl.keystore.location /etc/x"


def read(name: str) -> bytes:
    return (DATA / name).read_bytes()


CHAIN = read("chain.pem")
CERTIFICATES = tuple(dict.fromkeys(block.der for block in split_pem(CHAIN, "chain.pem")))
CLIENT, MIDDLE, ROOT = CERTIFICATES


def pem(label: str, der: bytes) -> bytes:
    return (
        f"-----BEGIN {label}-----\n".encode() + base64.encodebytes(der) + f"-----END {label}-----\n".encode()
    )


def accepted_by_openssl(found: Identity, folder: Path) -> bool:
    """Whether OpenSSL takes the certificates and the key, which it does only if they belong
    together."""
    file = folder / "identity.pem"
    file.write_bytes(pem_of(found.certificates).encode() + pem("PRIVATE KEY", found.key))
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(file)
    return True


@pytest.mark.parametrize("declared", [None, "JKS", "PKCS12", "PEM", "pkcs12"])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("trust.jks", {MIDDLE, ROOT}),
        ("trust.p12", {MIDDLE, ROOT}),
        ("chain.pem", {CLIENT, MIDDLE, ROOT}),
        ("trust-open.p12", {ROOT}),
        ("identity.jks", {CLIENT}),
        ("identity.p12", {CLIENT, MIDDLE, ROOT}),
    ],
)
def test_certificates_to_trust_whatever_the_type_is_said_to_be(
    name: str, expected: set[bytes], declared: str | None
) -> None:
    found = trusted_certificates(read(name), declared, PASSWORD, TRUST)
    assert set(found) == expected
    assert len(found) == len(expected)


@pytest.mark.parametrize("name", ["trust.jks", "chain.pem", "trust-open.p12"])
def test_what_is_not_encrypted_needs_no_password(name: str) -> None:
    assert ROOT in trusted_certificates(read(name), None, None, TRUST)


@pytest.mark.parametrize("name", ["identity.jks", "identity.p12", "identity-legacy.p12"])
@pytest.mark.parametrize(
    ("store_password", "key_password"), [(PASSWORD, None), (PASSWORD, PASSWORD), (None, PASSWORD)]
)
def test_a_key_and_its_chain(
    name: str, store_password: str | None, key_password: str | None, tmp_path: Path
) -> None:
    found = identity(read(name), None, store_password, key_password, KEY)
    assert found.certificates == CERTIFICATES
    assert found == identity(CHAIN + read("key.pem"), None, None, None, KEY)
    assert accepted_by_openssl(found, tmp_path)


@pytest.mark.parametrize(
    ("certificates", "key", "key_password"),
    [
        ("chain.pem", "key.pem", None),
        ("chain.pem", "key.pem", "not needed"),
        ("chain.pem", "key-encrypted.pem", PASSWORD),
        ("chain.pem", "key-rsa.pem", None),
        ("cert-ec.pem", "key-ec.pem", None),
    ],
)
@pytest.mark.parametrize("key_first", [True, False])
def test_pem_in_any_order(
    certificates: str, key: str, key_password: str | None, key_first: bool, tmp_path: Path
) -> None:
    parts = [read(key), read(certificates)]
    found = identity(b"".join(parts if key_first else reversed(parts)), "PEM", None, key_password, KEY)
    assert found.certificates[0] == split_pem(read(certificates), "")[0].der
    assert accepted_by_openssl(found, tmp_path)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((CLIENT, MIDDLE, ROOT), (CLIENT, MIDDLE, ROOT)),
        ((ROOT, MIDDLE, CLIENT), (CLIENT, MIDDLE, ROOT)),
        ((MIDDLE, CLIENT, MIDDLE), (CLIENT, MIDDLE)),
        ((ROOT, CLIENT), (CLIENT, ROOT)),
        ((CLIENT,), (CLIENT,)),
        ((ROOT,), (ROOT,)),
    ],
)
def test_a_client_s_own_certificate_comes_first(
    given: tuple[bytes, ...], expected: tuple[bytes, ...]
) -> None:
    assert identity(read("key.pem") + pem_of(given).encode(), None, None, None, KEY).certificates == expected


def test_certificates_that_belong_to_no_chain_come_last() -> None:
    (stranger,) = (block.der for block in split_pem(read("cert-ec.pem"), ""))
    found = identity(pem_of([stranger, MIDDLE, CLIENT]).encode() + read("key.pem"), None, None, None, KEY)
    assert found.certificates == (CLIENT, MIDDLE, stranger)


def test_of_several_keys_one_is_taken(tmp_path: Path) -> None:
    by_alias = identity(read("two-keys.jks"), None, PASSWORD, "changeit-key", KEY)
    first = identity(read("two-keys.p12"), None, PASSWORD, None, KEY)
    assert b"alpha" in by_alias.certificates[0]
    assert b"beta" in first.certificates[0]
    assert len(by_alias.certificates) == len(first.certificates) == 1
    assert accepted_by_openssl(by_alias, tmp_path)
    assert accepted_by_openssl(first, tmp_path)


def test_no_key_is_shown() -> None:
    found = identity(read("identity.jks"), None, PASSWORD, None, KEY)
    assert repr(found) == str(found) == "Identity(certificates: 3, key: [hidden])"
    assert repr(split_pem(read("key.pem"), "")) == "[PemBlock(label='PRIVATE KEY', encrypted=False)]"


@pytest.mark.parametrize(
    "text",
    [
        CHAIN.replace(b"\n", b"\r\n"),
        CHAIN.replace(b"\n", b"\r"),
        CHAIN.replace(b"\n", b" "),
        b"\xef\xbb\xbf" + CHAIN.replace(b"\n", b"\n\n"),
        b"subject=Z\xc3\xbcrich --- \n"
        + CHAIN.replace(b"-----BEGIN", b"# one more\n-----BEGIN")
        + b"-----\nend",
        CHAIN.replace(b"CERTIFICATE", b"X509 CERTIFICATE"),
        CHAIN.replace(b"CERTIFICATE-----\n", b"CERTIFICATE-----\nComment: none\n\n"),
        CHAIN.rstrip(),
    ],
)
def test_pem_may_have_any_line_ends_and_text_around_it(text: bytes) -> None:
    assert trusted_certificates(text, None, None, TRUST) == CERTIFICATES


def test_blocks_of_pem() -> None:
    text = (
        b"-----BEGIN PGP MESSAGE-----\n!\n-----END PGP MESSAGE-----\n"
        + pem("CERTIFICATE", ROOT)
        + read("key-rsa-encrypted.pem")
    )
    first, second, third = split_pem(text, "x")
    assert (first, second) == (PemBlock("PGP MESSAGE", b""), PemBlock("CERTIFICATE", ROOT))
    assert (third.label, third.encrypted) == ("RSA PRIVATE KEY", True)
    assert split_pem(b"none", "x") == []


def test_certificates_as_pem() -> None:
    text = pem_of(CERTIFICATES)
    assert [
        ssl.PEM_cert_to_DER_cert(part + "-----END CERTIFICATE-----")
        for part in text.split("-----END CERTIFICATE-----\n")[:-1]
    ] == list(CERTIFICATES)
    assert pem_of([ROOT]) == ssl.DER_cert_to_PEM_cert(ROOT)
    assert pem_of([]) == ""


NO_STORE = r"no key store that is known \(JKS, PKCS12, PEM\); check that it is the right file"


@pytest.mark.parametrize(
    ("data", "declared", "password", "told"),
    [
        (b"", None, None, "is empty; give a key store of type JKS, PKCS12 or PEM"),
        (b" \r\n", "PEM", None, "is empty; give a key store of type JKS, PKCS12 or PEM"),
        (b"hello", None, None, f"is {NO_STORE}"),
        (
            b"hello",
            "pem",
            None,
            r"is no PEM, nor any other key store that is known \(JKS, PKCS12, PEM\); check that it is the "
            r"right file",
        ),
        (b"0", None, None, f"is {NO_STORE}"),
        (
            read("trust.jks"),
            "BKS",
            PASSWORD,
            "key stores of type BKS are not known; known are JKS, PKCS12, PEM",
        ),
        (
            ROOT,
            None,
            None,
            "is no PKCS12 but DER of another kind; convert a certificate to PEM: `openssl x509 -inform der "
            ".*`",
        ),
        (
            read("old.jceks"),
            None,
            PASSWORD,
            "is a JCEKS, which only Java reads; convert it: `keytool .*`, and give NEW.p12",
        ),
        (
            read("trust.jks"),
            None,
            "no",
            "ssl.truststore.password is wrong, or the file was changed; `keytool -list -keystore FILE` tells "
            "which",
        ),
        (read("trust.p12"), None, "no", "ssl.truststore.password is wrong, or the file is damaged"),
        (read("trust.p12"), None, None, "is a PKCS12, which needs a password; set ssl.truststore.password"),
        (
            read("trust.p12")[:-1],
            None,
            PASSWORD,
            "the file is cut short: it has 1829 of its 1830 bytes; copy it again",
        ),
        (b"0\x80\x02\x01\x03", None, PASSWORD, "ssl.truststore.password is wrong, or the file is damaged"),
        (
            read("key.pem"),
            None,
            None,
            "there is no CERTIFICATE in it, only 1 PRIVATE KEY; give the certificates to trust",
        ),
        (
            CHAIN[:500],
            None,
            None,
            "block 1 of the PEM text has a BEGIN, but no END that matches; the text may be cut short",
        ),
        (
            b"-----BEGIN ",
            None,
            None,
            "block 1 of the PEM text has a BEGIN, but no END that matches; the text may be cut short",
        ),
        (
            CHAIN.replace(b"END", b"FIN", 1),
            None,
            None,
            "block 1 of the PEM text has a BEGIN, but no END that matches; .*",
        ),
        (
            pem("CERTIFICATE", ROOT[:-1]),
            None,
            None,
            "block 1 of the PEM text, CERTIFICATE, is damaged or cut short; copy it again",
        ),
        (
            pem("CERTIFICATE", b""),
            None,
            None,
            "block 1 of the PEM text, CERTIFICATE, is damaged or cut short; copy it again",
        ),
        (
            CHAIN.replace(b"M", b"*"),
            None,
            None,
            "block 1 of the PEM text, CERTIFICATE, is damaged or cut short; copy it again",
        ),
        (
            pem("CERTIFICATE", ROOT) + pem("CERTIFICATE", b"0\0"),
            None,
            None,
            "certificate 2 is damaged; copy it again",
        ),
        (pem("CERTIFICATE", read("two-keys.p12")), None, None, "certificate 1 is damaged; copy it again"),
        (
            bytes.fromhex("feedfeed0000000200000000") + bytes(20),
            None,
            None,
            "there is no certificate in it; .*: `keytool -importcert`",
        ),
    ],
)
def test_a_trust_store_that_cannot_be_read_is_told(
    data: bytes, declared: str | None, password: str | None, told: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{TRUST}: {told}$"):
        trusted_certificates(data, declared, password, TRUST)


NO_KEY = "give the key store, not the trust store"
TO_PKCS8 = "convert it: `openssl pkcs8 -topk8 -in OLD -out NEW`"


@pytest.mark.parametrize(
    ("data", "passwords", "told"),
    [
        (b"", (None, None), "is empty; .*"),
        (read("trust.jks"), (PASSWORD, None), f"there is no private key in it, only certificates; {NO_KEY}"),
        (read("trust.p12"), (PASSWORD, None), f"there is no private key in it, only certificates; {NO_KEY}"),
        (
            bytes.fromhex("feedfeed0000000200000000") + bytes(20),
            (None, None),
            f"there is no private key in it, nor anything else; {NO_KEY}",
        ),
        (
            CHAIN,
            (None, None),
            "there is no PRIVATE KEY in it, only 4 CERTIFICATE; add the key of the certificate",
        ),
        (
            read("key.pem"),
            (None, None),
            "there is no CERTIFICATE in it, only 1 PRIVATE KEY; add the certificate of the key",
        ),
        (
            read("identity.jks"),
            ("no", None),
            "ssl.keystore.password is wrong, or the file was changed; `keytool .*` tells which",
        ),
        (
            read("identity.jks"),
            (PASSWORD, "no"),
            "ssl.key.password is not that of the private key of alias 'client'",
        ),
        (
            read("two-keys.jks"),
            (PASSWORD, None),
            r"ssl.keystore.password \(ssl.key.password is not set\) is not that of the private key of alias "
            r"'alpha'",
        ),
        (
            read("ec.jks"),
            (None, None),
            "its private key needs a password; set ssl.keystore.password, or ssl.key.password if it has its "
            "own",
        ),
        (
            read("identity.p12"),
            ("no", None),
            "ssl.keystore.password is wrong, or the file is damaged; a key in a PKCS12 must have .*",
        ),
        (
            read("identity.p12"),
            (None, None),
            "is a PKCS12, which needs a password; set ssl.keystore.password",
        ),
        (
            CHAIN + read("key-encrypted.pem"),
            (PASSWORD, None),
            "its private key is encrypted; set ssl.key.password",
        ),
        (CHAIN + read("key-encrypted.pem"), (None, ""), "its private key is encrypted; set ssl.key.password"),
        (
            CHAIN + read("key-encrypted.pem"),
            (None, "no"),
            "ssl.key.password is wrong, or the private key is damaged",
        ),
        (
            CHAIN + pem("ENCRYPTED PRIVATE KEY", ROOT),
            (None, "no"),
            "ssl.key.password is wrong, or the private key is damaged",
        ),
        (
            CHAIN + read("key-rsa-encrypted.pem"),
            (None, PASSWORD),
            f"the RSA PRIVATE KEY in it is encrypted in OpenSSL's old way; {TO_PKCS8}, and set "
            "ssl.key.password",
        ),
        (
            CHAIN + pem("OPENSSH PRIVATE KEY", b"0"),
            (None, None),
            f"the OPENSSH PRIVATE KEY in it is of a form that is not read; {TO_PKCS8}",
        ),
        (
            CHAIN + pem("PRIVATE KEY", ROOT),
            (None, None),
            f"the PRIVATE KEY in it is damaged; copy it again, or {TO_PKCS8}",
        ),
        (
            CHAIN + pem("EC PRIVATE KEY", b"0\0"),
            (None, None),
            f"the EC PRIVATE KEY in it is damaged; copy it again, or {TO_PKCS8}",
        ),
        (
            CHAIN + pem("PRIVATE KEY", b"0\1"),
            (None, None),
            "block 5 of the PEM text, PRIVATE KEY, is damaged or cut short; copy it again",
        ),
        (
            pem("CERTIFICATE", b"0\0") + read("key.pem"),
            (None, None),
            "certificate 1 is damaged; copy it again",
        ),
    ],
)
def test_an_identity_that_cannot_be_read_is_told(
    data: bytes, passwords: tuple[str | None, str | None], told: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{KEY}: {told}$") as raised:
        identity(data, None, *passwords, KEY)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize("name", ["two-keys.p12", "ec.jks", "cert-ec.pem", "key-ec.pem"])
def test_a_file_that_is_cut_short_anywhere_is_told(name: str) -> None:
    whole = read(name).rstrip()
    for length in range(len(whole)):
        with pytest.raises(ConfigError, match=f"^{re.escape(KEY)}: "):
            identity(whole[:length], None, PASSWORD, None, KEY)
        with pytest.raises(ConfigError, match=f"^{re.escape(TRUST)}: "):
            trusted_certificates(whole[:length], None, PASSWORD, TRUST)


@pytest.mark.parametrize(
    ("data", "reading"),
    [
        (read("identity.p12"), "a PKCS12 key store"),
        (CHAIN + read("key-encrypted.pem"), "an encrypted private key"),
    ],
)
def test_without_cryptography_its_absence_is_told(
    data: bytes, reading: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(ConfigError) as raised:
        identity(data, None, PASSWORD, PASSWORD, KEY)
    assert (
        str(raised.value)
        == f'{KEY}: reading {reading} needs the package cryptography: pip install "fairlead-kafka[security]"'
    )


@pytest.mark.parametrize("data", [read("identity.jks"), CHAIN + read("key.pem"), CHAIN + read("key-rsa.pem")])
def test_most_is_read_without_cryptography(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    assert identity(data, None, PASSWORD, None, KEY).certificates == CERTIFICATES
    assert trusted_certificates(data, None, PASSWORD, TRUST)
