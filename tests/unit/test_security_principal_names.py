"""Names of certificates' owners as Java prints them, and the rules that make users of them."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from asn1crypto import x509
from hypothesis import given
from hypothesis import strategies as st

from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError
from fairlead_kafka.security.principal_names import PrincipalNames, subject_name
from fairlead_kafka.testing.certificates import Certificates


def der(tag: int, content: bytes) -> bytes:
    assert len(content) < 0x8000
    size = bytes([len(content)]) if len(content) < 0x80 else b"\x82" + len(content).to_bytes(2, "big")
    return bytes([tag]) + size + content


OIDS = {
    "CN": "550403", "C": "550406", "L": "550407", "ST": "550408", "STREET": "550409", "O": "55040a",
    "OU": "55040b",
    "DC": "0992268993f22c640119", "UID": "0992268993f22c640101", "E": "2a864886f70d010901",
    "SERIAL": "550405", "ODD": "883703",
}  # fmt: skip


def certificate(*sets: list[tuple[str, int, bytes]]) -> bytes:
    """As much of a certificate as is read: a subject of (attribute, type of string, value)."""
    name = der(
        0x30,
        b"".join(
            der(
                0x31,
                b"".join(
                    der(0x30, der(6, bytes.fromhex(OIDS[kind])) + der(tag, value))
                    for kind, tag, value in each
                ),
            )
            for each in sets
        ),
    )
    rest = der(0x30, b"")
    return der(
        0x30,
        der(0x30, der(0xA0, der(2, b"\2")) + der(2, b"\1") + rest + rest + rest + name + rest)
        + rest
        + der(3, b"\0"),
    )


UTF8, PRINTABLE = 0x0C, 0x13


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ([], ""),
        ([[("CN", UTF8, b"alice")]], "CN=alice"),
        (
            [[("C", PRINTABLE, b"DE")], [("O", UTF8, b"Acme")], [("OU", UTF8, b"x")], [("CN", UTF8, b"a")]],
            "CN=a,OU=x,O=Acme,C=DE",
        ),
        ([[("CN", UTF8, b"a"), ("UID", UTF8, b"b")]], "CN=a+UID=b"),
        (
            [[("STREET", UTF8, b"s")], [("DC", 0x16, b"d")], [("L", UTF8, b"l")], [("ST", UTF8, b"t")]],
            "ST=t,L=l,DC=d,STREET=s",
        ),
        ([[("CN", UTF8, b'a,b=c+d<e>f#g;h"i\\j')]], r"CN=a\,b\=c\+d\<e\>f\#g\;h\"i\\j"),
        ([[("CN", UTF8, b" a  b ")]], r"CN=\ a  b\ "),
        ([[("CN", UTF8, "zoë 漢".encode())]], "CN=zoë 漢"),
        ([[("CN", UTF8, b"a\0b")]], r"CN=a\00b"),
        ([[("E", 0x16, b"a@b")]], "1.2.840.113549.1.9.1=#1603614062"),
        ([[("SERIAL", PRINTABLE, b"1")]], "2.5.4.5=#130131"),
        ([[("ODD", PRINTABLE, b"1")]], "2.999.3=#130131"),
        ([[("CN", 0x04, b"ab")]], "CN=#04026162"),
        ([[("CN", 0x1C, b"abcd")]], "CN=#1c0461626364"),
        ([[("CN", 0x1E, b"\0a")]], r"CN=\00a"),
    ],
)
def test_a_subject_is_printed_as_java_prints_it(sets: Any, expected: str) -> None:
    assert subject_name(certificate(*sets)) == expected


def test_a_true_certificate_has_a_subject(tmp_path: Any) -> None:
    from fairlead_kafka.security.key_stores import split_pem

    path = Certificates(tmp_path).issue("client.example")
    own = next(block.der for block in split_pem(path.read_bytes(), "it") if block.label == "CERTIFICATE")
    subject = x509.Certificate.load(own).subject.native
    unit = subject["organizational_unit_name"].replace("#", "\\#")
    assert subject_name(own) == f"OU={unit},O={subject['organization_name']}"


@given(st.binary(max_size=40), st.integers(0, 200), st.integers(0, 255))
def test_a_damaged_certificate_is_told_as_that(noise: bytes, at: int, octet: int) -> None:
    sound = certificate([("CN", UTF8, b"alice")], [("E", 0x16, b"a@b")])
    for data in (noise, sound[:at], sound[:at] + bytes([octet]) + sound[at + 1 :]):
        with suppress(ValueError):
            assert isinstance(subject_name(data), str)


SUBJECT = "CN=kafka-server1,OU=Service Users,O=Unknown,L=Unknown,ST=Unknown,C=Unknown"


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        ("DEFAULT", SUBJECT, SUBJECT),
        ("RULE:^CN=(.*?),OU=Service Users.*$/$1/,DEFAULT", SUBJECT, "kafka-server1"),
        ("RULE:^CN=(.*?),OU=Other.*$/$1/,DEFAULT", SUBJECT, SUBJECT),
        ("RULE:^CN=(.*?), *OU=(.*?),.*$/$1@$2/U", SUBJECT, "KAFKA-SERVER1@SERVICE USERS"),
        ("RULE:^CN=(.*?),.*$/$1/U , RULE:.*/x/", SUBJECT, "KAFKA-SERVER1"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT", "CN=Duke,O=JavaSoft", "duke"),
        ("RULE:^CN=(?<who>\\w+).*/${who}!/", "CN=Duke,O=x", "Duke!"),
        ("RULE:^CN=(\\w+).*/\\$$1\\\\/", "CN=Duke,O=x", "$Duke\\"),
        ("RULE:^CN=(\\w+).*/$1$2@$12/", "CN=Duke,O=x", "Duke$2@Duke2"),
        ("RULE:^CN=(\\w+).*/[$0]/", "CN=Duke,O=x", "[CN=Duke,O=x]"),
        ("RULE:^cn=(\\w+)(,o=x)?.*/<$2>/", "cn=Duke", "<>"),
        ("RULE:CN=a\\/b/c\\/d/", "CN=a/b", "c/d"),
        ("RULE:(?i)^cn=(.*)$/$1/", "CN=Duke", "Duke"),
        ("RULE:.*/x/", "CN=Duke", "xx"),
        ("RULE:(.*?)/<$1>/", "ab", "<>a<>b<>"),
        (",DEFAULT", "CN=Duke", "CN=Duke"),
    ],
)
def test_rules_make_names(rules: str, subject: str, name: str) -> None:
    assert PrincipalNames(rules).name(subject) == name


@pytest.mark.parametrize("rules", ["RULE:^CN=(.*)x$/$1/", "", "RULE:^OU=.*$/a/, RULE:x/y/"])
def test_a_certificate_that_no_rule_fits_is_refused(rules: str) -> None:
    with pytest.raises(
        AuthenticationFailed, match="Failed to map name for 'CN=Duke' based on SSL principal mapping rules"
    ):
        PrincipalNames(rules).name("CN=Duke")


@pytest.mark.parametrize(
    "rules",
    [
        "RULE:^CN=(.*)$", "RULE:^CN=(.*)$/$1", "RULE:^CN=(.*)$/$1/X", "default", "DEFAULT,x",
        "RULE:^CN=(.*$/$1/", "RULE:a/$1/",
        "RULE:(a)/$/", "RULE:(a)/${b}/", "RULE:\\p{Alpha}/x/", "RULE:(a)/$x/",
    ],
)  # fmt: skip
def test_what_is_no_rule_is_told_at_once(rules: str) -> None:
    with pytest.raises(ConfigError, match=re.escape("ssl.principal.mapping.rules: ")):
        PrincipalNames(rules)
