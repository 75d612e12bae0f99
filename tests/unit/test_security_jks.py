"""JKS key stores: what keytool wrote is read, and what is damaged is told."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import pytest

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.security.jks import KeyEntry, der_elements, der_sequence, read_jks, unprotect_key

DATA = Path(__file__).parents[1] / "data" / "security"
MAGIC, JCEKS_MAGIC = bytes.fromhex("feedfeed"), bytes.fromhex("cececece")
PASSWORD = "changeit"


def read(name: str) -> bytes:
    return (DATA / name).read_bytes()


def number(value: int) -> bytes:
    return struct.pack(">I", value)


def text(value: bytes) -> bytes:
    return struct.pack(">H", len(value)) + value


def trusted_entry(alias: bytes, certificate: bytes, kind: bytes | None = b"X.509") -> bytes:
    typed = b"" if kind is None else text(kind)
    return number(2) + text(alias) + bytes(8) + typed + number(len(certificate)) + certificate


def store(*entries: bytes, version: int = 2, count: int | None = None, password: str = PASSWORD) -> bytes:
    """A JKS as the format says."""
    data = MAGIC + number(version) + number(len(entries) if count is None else count) + b"".join(entries)
    return data + hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + data).digest()


def test_a_key_and_its_chain() -> None:
    found = read_jks(read("identity.jks"), PASSWORD)
    assert found.trusted == ()
    (entry,) = found.keys
    assert entry.alias == "client"
    assert len(entry.certificates) == 3
    assert b"client" in entry.certificates[0]
    assert b"Fairlead test root" in entry.certificates[2]
    assert [element.tag for element in der_sequence(unprotect_key(entry, PASSWORD))] == [0x02, 0x30, 0x04]


def test_certificates_to_trust() -> None:
    found = read_jks(read("trust.jks"), PASSWORD)
    assert found.keys == ()
    assert sorted(entry.alias for entry in found.trusted) == ["middle", "root"]
    assert all(len(der_sequence(entry.certificate)) == 3 for entry in found.trusted)


def test_each_key_has_its_own_password() -> None:
    keys = {entry.alias: entry for entry in read_jks(read("two-keys.jks"), PASSWORD).keys}
    assert unprotect_key(keys["beta"], PASSWORD) != unprotect_key(keys["alpha"], "changeit-key")
    with pytest.raises(
        ConfigError, match=r"^/etc/x: ssl.key.password is not that of the private key of alias 'alpha'$"
    ):
        unprotect_key(keys["alpha"], PASSWORD, "/etc/x", "ssl.key.password")


def test_no_certificate_and_no_key_is_shown() -> None:
    assert repr(read_jks(read("ec.jks"), PASSWORD)) == "Jks(trusted=(), keys=(KeyEntry(alias='ec'),))"
    assert "30" not in repr(read_jks(read("trust.jks"), PASSWORD))


@pytest.mark.parametrize("password", ["wrong", "", "changeit ", "пароль", "\ud800"])
def test_a_wrong_password_is_told_and_not_shown(password: str) -> None:
    with pytest.raises(
        ConfigError,
        match=r"^/etc/x: ssl.p is wrong, or the file was changed; `keytool -list -keystore FILE` tells "
        r"which$",
    ):
        read_jks(read("ec.jks"), password, "/etc/x", "ssl.p")


def test_without_a_password_nothing_is_checked() -> None:
    changed = bytearray(read("trust.jks"))
    changed[-1] ^= 1
    assert len(read_jks(bytes(changed), None).trusted) == 2


def test_version_1_says_no_type_of_certificates() -> None:
    data = store(trusted_entry(b"old", b"abc", kind=None), version=1)
    assert [(entry.alias, entry.certificate) for entry in read_jks(data, PASSWORD).trusted] == [
        ("old", b"abc")
    ]


@pytest.mark.parametrize(
    ("written", "alias"),
    [
        (b"plain", "plain"),
        ("schlüssel".encode(), "schlüssel"),
        (b"a\xc0\x80b", "a\0b"),
        (b"\xed\xa0\xbd\xed\xb8\x80", "\U0001f600"),
        (b"\xed\xa0\xbd", "\ufffd"),
        (b"", ""),
    ],
)
def test_names_are_in_java_s_own_utf_8(written: bytes, alias: str) -> None:
    assert read_jks(store(trusted_entry(written, b"abc")), PASSWORD).trusted[0].alias == alias


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "the file is empty; give a key store"),
        (b"\x30\x82", "is no JKS"),
        (
            JCEKS_MAGIC + bytes(40),
            "is a JCEKS, which only Java reads; convert it: `keytool -importkeystore .* -srcstoretype JCEKS "
            ".*PKCS12`",
        ),
        (
            store(version=3),
            "is a JKS of version 3, but only versions 1 and 2 are known; the file is likely damaged",
        ),
        (store(count=2**32 - 1), "the file is cut short or damaged: .*; copy or make it again"),
        (
            store(number(3) + text(b"a") + bytes(8)),
            "there is an entry of the unknown kind 3; copy or make it again",
        ),
        (store(trusted_entry(b"a", b"abc", kind=b"PGP")), "there is a certificate that is not X.509"),
        (store(trusted_entry(b"\xff", b"abc")), "there is a name that is not text"),
        (
            MAGIC + number(2) + number(1) + number(1) + text(b"a") + bytes(8) + number(2**32 - 1),
            "at byte 31 it says that 4294967295 more",
        ),
        (store(number(1) + text(b"a") + bytes(8) + number(0) + number(2**32 - 1)), "cut short or damaged"),
    ],
)
@pytest.mark.parametrize("password", [PASSWORD, None])
def test_what_is_no_jks_is_told(data: bytes, told: str, password: str | None) -> None:
    with pytest.raises(ConfigError, match=f"^/etc/x: .*{told}"):
        read_jks(data, password, "/etc/x")


@pytest.mark.parametrize("name", ["ec.jks", "trust.jks"])
@pytest.mark.parametrize("password", [PASSWORD, None])
def test_a_file_that_is_cut_short_anywhere_is_told(name: str, password: str | None) -> None:
    whole = read(name)
    for length in range(len(whole)):
        with pytest.raises(ConfigError, match=r"^/etc/x: "):
            read_jks(whole[:length], password, "/etc/x")


def test_any_changed_byte_gives_a_key_store_or_an_error_of_ours() -> None:
    whole = read("ec.jks")
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 0xFF
        with pytest.raises(ConfigError):
            read_jks(bytes(changed), PASSWORD)
        try:
            for entry in read_jks(bytes(changed), None).keys:
                unprotect_key(entry, PASSWORD)
        except ConfigError:
            continue


def test_a_protected_key_that_is_damaged_anywhere_is_told() -> None:
    (entry,) = read_jks(read("ec.jks"), PASSWORD).keys
    for length in range(len(entry.protected_key)):
        with pytest.raises(
            ConfigError,
            match=r"^the key store: the private key of alias 'ec' is damaged; make the file again$",
        ):
            unprotect_key(KeyEntry("ec", (), entry.protected_key[:length]), PASSWORD)


@pytest.mark.parametrize(
    ("protected", "told"),
    [
        ("300f300b06092a864886f70d0107010400", "is protected in another way than a JKS does it; convert it"),
        ("3012300e060a2b060104012a021101010500" + "0400", "is damaged"),
        ("3012300e060a2b060104012a02110101" + "05000400", "is damaged"),
        ("300430000400", "is damaged"),
        ("3003020100", "is damaged"),
        ("30060201000201003000", "is damaged"),
    ],
)
def test_other_protections_are_told(protected: str, told: str) -> None:
    with pytest.raises(ConfigError, match=f"^/etc/x: the private key of alias 'a' {told}"):
        unprotect_key(KeyEntry("a", (), bytes.fromhex(protected)), PASSWORD, "/etc/x")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("", []),
        ("0500", [(5, b"", b"\x05\0")]),
        ("0401aa0500", [(4, b"\xaa", b"\x04\x01\xaa"), (5, b"", b"\x05\0")]),
        ("048101aa", [(4, b"\xaa", b"\x04\x81\x01\xaa")]),
    ],
)
def test_elements_of_der(data: str, expected: list[tuple[int, bytes, bytes]]) -> None:
    assert der_elements(bytes.fromhex(data)) == expected


@pytest.mark.parametrize(
    "data", ["04", "0401", "0480", "048101", "0485000000000101", "1f0100", "0484ffffffff00", "040100ff"]
)
def test_what_is_no_der_is_refused(data: str) -> None:
    with pytest.raises(ValueError, match=r"ends early|tag|length"):
        der_elements(bytes.fromhex(data))
