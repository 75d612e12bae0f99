"""`sasl.jaas.config` is read as Kafka 4.3 reads it, but for a quote that is not closed, and no
message shows a piece of it."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.security.jaas import JaasEntry, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
FORM = '; the form is: CLASS required NAME="VALUE" … ;'
VALUE = "the value of an option, in quotes if it is more than letters and digits or begins with a digit"
FLAGS = "one of required, requisite, sufficient, optional"


def test_a_log_in() -> None:
    entry = parse_jaas(f'{PLAIN} required username="alice" password="a\\"b;c" ;')
    assert entry == JaasEntry(PLAIN, {"username": "alice", "password": 'a"b;c'})
    assert repr(entry) == str(entry) == f"JaasEntry({PLAIN}, options: username, password)"
    assert repr(parse_jaas("M required;")) == "JaasEntry(M, options: none)"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", "true"),
        ("a-b_c$d.e9", "a-b_c$d.e9"),
        ("Größe", "Größe"),
        ("\U0001f600", "\U0001f600"),
        ('""', ""),
        ("''", ""),
        ("'single'", "single"),
        ("""'a"b'""", 'a"b'),
        ('''"a'b"''', "a'b"),
        ('"a // b /* c */ # = ;"', "a // b /* c */ # = ;"),
        (r'"\\ \" \' \/ \q"', "\\ \" ' / q"),
        (r'"\a\b\f\n\r\t\v"', "\x07\b\f\n\r\t\x0b"),
        (r'"\101\7\377\0x"', "A\x07\xff\0x"),
        (r'"\477 \1011 \18"', "'7 A1 \x018"),
        ('"a\\\nb"', "a\nb"),
        ('"пароль"', "пароль"),
        ('"' + "x" * 100_000 + '"', "x" * 100_000),
    ],
)
def test_values(written: str, value: str) -> None:
    assert parse_jaas(f"M required first=x name={written} last=y;").options == {
        "first": "x",
        "name": value,
        "last": "y",
    }


@pytest.mark.parametrize(
    "text",
    [
        "M required a=b;",
        "M required a = b ;",
        "M REQUIRED a=b;",
        "M Optional a=b;",
        "M requisite a=b;",
        "M sufficient a=b;",
        "\n\tM\r\nrequired\n  a=b\n;\n",
        "M required'a'='b';",
        '"M" "required" "a"="b";',
        "// who\nM /* how */ required/**/a=b; // done",
        "/* one\n * two ***/M required a=/ the rest is a comment\nb;",
        "M required a=c a=b;",
        "M required a=b; /* never closed",
        "M required a=b; /",
        "M required a=b // one ;\n;",
    ],
)
def test_white_space_flags_and_comments(text: str) -> None:
    assert parse_jaas(text) == JaasEntry("M", {"a": "b"})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "at its end: expected the class of a log-in module"),
        (" // M required;", "at its end: expected the class of a log-in module"),
        (";", "at column 1: expected the class of a log-in module"),
        ("9 required;", "at column 1: expected the class of a log-in module"),
        ("M", f"at its end: expected {FLAGS}"),
        ("M secret=s;", f"at column 3: expected {FLAGS}"),
        ("M;", f"at column 2: expected {FLAGS}"),
        ("M required", "at its end: expected the name of an option, or ';' at the end"),
        ("M required secret=s", "at its end: expected the name of an option, or ';' at the end"),
        ("M required =s;", "at column 12: expected the name of an option, or ';' at the end"),
        ("M required a='b',c='d';", "at column 17: expected the name of an option, or ';' at the end"),
        ("M required secret s;", "at column 19: expected '=' after the name of an option"),
        ("M required secret;", "at column 18: expected '=' after the name of an option"),
        ("M required secret", "at its end: expected '=' after the name of an option"),
        ("M required secret=", f"at its end: expected {VALUE}"),
        ("M required secret=;", f"at column 19: expected {VALUE}"),
        ("M required secret=12;", f"at column 19: expected {VALUE}"),
        ("M required secret=-s;", f"at column 19: expected {VALUE}"),
        ("M required secret=#s;", f"at column 19: expected {VALUE}"),
        ("M required\n secret=12;", f"at line 2, column 9: expected {VALUE}"),
        ("M required secret=/etc/s;", f"at its end: expected {VALUE}"),
        (
            "M required a=s; N required b=s;",
            "at column 17: expected nothing after ';', for there can be one log-in module only",
        ),
        (
            "M required a=s;;",
            "at column 16: expected nothing after ';', for there can be one log-in module only",
        ),
    ],
)
def test_what_cannot_be_read_is_told_by_its_place(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_jaas(text, "x.sasl.jaas.config")
    assert str(raised.value) == f"x.sasl.jaas.config: {told}{FORM}"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("M required a='s", "column 14"),
        ('M required a="s\\";', "column 14"),
        ('M required a="s\\', "column 14"),
        ('M required\na="s\n;', "line 2, column 3"),
        ("M required a=\"s';", "column 14"),
    ],
)
def test_a_quote_that_is_not_closed_is_told(text: str, place: str) -> None:
    with pytest.raises(
        ConfigError, match=f"^sasl.jaas.config: at {place}: a quote begins that is not closed on its line$"
    ):
        parse_jaas(text)


def test_no_message_shows_a_word_of_the_text() -> None:
    text = f'{PLAIN} required username="Xalice" password="Xse\\"Xcret\';/*" Xword=Xvalue ;'
    messages = []
    for length in range(len(text)):
        for one in (text[:length], text[:length] + text[length + 1 :], text[:length] + '"' + text[length:]):
            try:
                parse_jaas(one)
            except ConfigError as error:
                messages.append(str(error))
    assert len(messages) > 200
    assert not [message for message in messages if "X" in message]
