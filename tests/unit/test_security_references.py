"""References in configs to variables, files and folders, and Java's properties files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.security.references import FILE_MAX_BYTES, parse_properties, references, resolve

KNOWN = "${env:NAME}, ${file:PATH:KEY}, ${file:PATH} and ${dir:PATH:NAME}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the test runs in, with secrets, and variables beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("USER_NAME", "alice")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.setenv("NESTED", "${env:USER_NAME}")
    (tmp_path / "s.properties").write_bytes(
        "# of tests\nuser = alice\npassword: s3cr\\u00e9t=:\nempty=\na\\:b=c\nünï=code\n".encode()
    )
    (tmp_path / "token").write_bytes(b"one\ntwo\n")
    (tmp_path / "dos").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    (tmp_path / "two ends").write_bytes(b"one\n\n")
    (tmp_path / "none").write_bytes(b"")
    (tmp_path / "binary").write_bytes(b"ab\xff")
    (tmp_path / "bad.properties").write_bytes(b"a=\\u00\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "key").write_bytes(b"k\n")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${env:USER_NAME}", "alice"),
        ("<${env:USER_NAME}|${env:EMPTY}|${env:USER_NAME}>", "<alice||alice>"),
        ("${env:NESTED}", "${env:USER_NAME}"),
        ("$${env:USER_NAME}}", "$alice}"),
        ("${ ${env:USER_NAME}", "${ alice"),
        ("${file:s.properties:user}", "alice"),
        ("${file:s.properties:password}", "s3crét=:"),
        ("${file:s.properties:empty}", ""),
        ("${file:s.properties:a:b}", "c"),
        ("${file:s.properties:ünï}", "code"),
        ("${file:./in/../s.properties:user}", "alice"),
        ("${file:token}", "one\ntwo"),
        ("${file:dos}", "one\r\ntwo"),
        ("${file:two ends}", "one\n"),
        ("${file:none}", ""),
        ("${dir:in:key}", "k"),
        ("${dir:.:token}", "one\ntwo"),
        (
            "M required password='${dir:in:key}' user='${env:USER_NAME}';",
            "M required password='k' user='alice';",
        ),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_reference_is_replaced(text: str, expected: str) -> None:
    assert references(text)
    assert resolve(text, "x") == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "$",
        "${",
        "${}",
        "${env}",
        "${env:X",
        "{env:X}",
        "$ {env:X}",
        "${{env:X}}",
        "%{env:X}",
        "a}:${b",
    ],
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert not references(text)
    assert resolve(text, "x") == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "${env:NO_SUCH}",
            "${env:NO_SUCH}: there is no such environment variable; set it before the program starts",
        ),
        ("${env:}", "${env:}: there is no such environment variable; set it before the program starts"),
        (
            "${file:gone:user}",
            "${file:gone:user}: the file cannot be read (No such file or directory); check its path and its "
            "permissions",
        ),
        (
            "${file:gone}",
            "${file:gone}: the file cannot be read (No such file or directory); check its path and its "
            "permissions",
        ),
        (
            "${file:in}",
            "${file:in}: the file cannot be read (Is a directory); check its path and its permissions",
        ),
        (
            "${file:}",
            "${file:}: the file cannot be read (Is a directory); check its path and its permissions",
        ),
        (
            "${file:a\0b}",
            "${file:a\0b}: the file cannot be read (not a path); check its path and its permissions",
        ),
        (
            "${file:s.properties:User}",
            "${file:s.properties:User}: the file has no key 'User'; add it: KEY=VALUE",
        ),
        ("${file:s.properties:}", "${file:s.properties:}: the file has no key ''; add it: KEY=VALUE"),
        ("${file:binary}", "${file:binary}: the file is not UTF-8 (at byte 2); save it as UTF-8"),
        ("${file:binary:ab}", "${file:binary:ab}: the file is not UTF-8 (at byte 2); save it as UTF-8"),
        (
            "${file:bad.properties:a}",
            "${file:bad.properties:a}: the file has a \\u that is not followed by four hexadecimal digits; "
            "mend it",
        ),
        (
            "${dir:in:gone}",
            "${dir:in:gone}: the file cannot be read (No such file or directory); check its path and its "
            "permissions",
        ),
        ("${dir:in}", "${dir:in}: must name a folder and a file that is in it: ${dir:PATH:NAME}"),
        ("${dir:in:}", "${dir:in:}: must name a folder and a file that is in it: ${dir:PATH:NAME}"),
        (
            "${dir:in:../token}",
            "${dir:in:../token}: must name a folder and a file that is in it: ${dir:PATH:NAME}",
        ),
        ("${dir:in:..}", "${dir:in:..}: must name a folder and a file that is in it: ${dir:PATH:NAME}"),
        (
            "${vault:a:b}",
            f"the reference at character 1 is of a provider that is not known; known are {KNOWN}",
        ),
        (
            "${env:EMPTY}${ENV:X}",
            f"the reference at character 13 is of a provider that is not known; known are {KNOWN}",
        ),
        ("${:X}", f"the reference at character 1 is of a provider that is not known; known are {KNOWN}"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_is_not_there_is_told(text: str, told: str) -> None:
    assert references(text)
    with pytest.raises(ConfigError) as raised:
        resolve(text, "ssl.key.password")
    assert str(raised.value) == f"ssl.key.password: {told}"


def test_a_file_has_a_largest_size(folder: Path) -> None:
    (folder / "large").write_bytes(b"x" * FILE_MAX_BYTES)
    assert len(resolve("${file:large}", "x")) == FILE_MAX_BYTES
    (folder / "large").write_bytes(b"x" * (FILE_MAX_BYTES + 1))
    with pytest.raises(
        ConfigError, match=r"the file is larger than 1,048,576 bytes, so it is no secret; check its path$"
    ):
        resolve("${dir:.:large}", "x")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no such device on this system")
def test_a_device_that_never_ends_is_refused() -> None:
    with pytest.raises(ConfigError, match="larger than"):
        resolve("${file:/dev/zero}", "x")


def test_a_windows_path_may_have_a_drive(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"No such file"):
        resolve("${file:C:\\keys\\p.txt}", "x")
    if os.name != "nt":
        (folder / "C:\\p.properties").write_text("a=b")
        assert resolve("${file:C:\\p.properties:a}", "x") == "b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\tb\fc", {"a": "b\fc"}),
        (" a = b ", {"a": "b "}),
        ("a : = b", {"a": "= b"}),
        ("a == b", {"a": "= b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("a=b\rc=d\r\ne=f\n", {"a": "b", "c": "d", "e": "f"}),
        ("a=b\na=c", {"a": "c"}),
        ("# a=b\n  ! c=d\n\n \t\ne=f # g", {"e": "f # g"}),
        ("# a=b \\\nc=d", {"c": "d"}),
        ("a=b, \\\n   c, \\\r\n\td", {"a": "b, c, d"}),
        ("a=b\\\n# c", {"a": "b# c"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\\\\\nc=d", {"a": "b\\c=d"}),
        ("a=b\\", {"a": "b"}),
        ("ab\\\n  c=d", {"abc": "d"}),
        ("a\\ b\\=c\\:d\\#=e", {"a b=c:d#": "e"}),
        ("\\#a=b", {"#a": "b"}),
        ('a=\\t\\n\\r\\f\\q\\"\\ ', {"a": '\t\n\r\fq" '}),
        ("a=\\  b", {"a": "  b"}),
        ("a=\\u00E9\\u00e9\\\\u00e9", {"a": "éé\\u00e9"}),
        ("a=\\uD83D\\uDE00", {"a": "\U0001f600"}),
        ("\\u0061=\U0001f600\x85\u2028", {"a": "\U0001f600\x85\u2028"}),
    ],
)
def test_properties_of_java(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize(
    "text", ["a=\\u", "a=\\u12", "a=\\u12 4", "\\uxyzw=b", "a=\\u00\\u00e9", "a=\\u+123"]
)
def test_an_escape_of_a_character_has_four_digits(text: str) -> None:
    with pytest.raises(ValueError, match="four hexadecimal digits"):
        parse_properties(text)
