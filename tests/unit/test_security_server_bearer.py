"""The server's end of OAUTHBEARER: which tokens are believed, held against another library, and
tokens that somebody made up."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.base.errors import AuthenticationFailed
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.security.jwks import Jwks, source_of
from fairlead_kafka.security.jwt import ALGORITHMS, Expected, believed, is_signed_by, taken_apart
from fairlead_kafka.security.mechanisms import OAuthBearer
from fairlead_kafka.security.server_bearer import EXTENSIONS_MAX, MESSAGE_MAX_BYTES, OAuthBearerServer
from fairlead_kafka.security.server_mechanisms import Answer
from fairlead_kafka.security.tokens import TOKEN_MAX_CHARACTERS, Token
from fairlead_kafka.testing.tokens import TokenIssuer

NOW = 1_800_000_000
TOLD = Answer(b'{"status":"invalid_token"}')
REFUSED = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism OAUTHBEARER"
)


def issuer_in(folder: Path, algorithm: str = "RS256") -> TokenIssuer:
    return TokenIssuer(folder, algorithm, lambda: NOW)


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> TokenIssuer:
    return issuer_in(tmp_path_factory.mktemp("issuer"))


def server(issuer: TokenIssuer, expected: Expected | None = None, now_s: float = NOW) -> OAuthBearerServer:
    return OAuthBearerServer(Jwks(source_of(issuer.jwks_url), 3600), expected or Expected(), lambda: now_s)


def initial(token: str, gs2: bytes = b"n,,", more: bytes = b"") -> bytes:
    return gs2 + b"\x01auth=Bearer " + token.encode() + b"\x01" + more + b"\x01"


def encoded(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def signed(issuer: TokenIssuer, header: Any, payload: Any) -> str:
    """A token of the issuer's key with any header and payload."""
    said = f"{encoded(header)}.{encoded(payload)}"
    return f"{said}.{encoded(issuer.sign(said.encode()))}"


def outcome(
    issuer: TokenIssuer, token: str, expected: Expected | None = None, now_s: float = NOW
) -> str | None:
    """The user, or None: it is not believed, and the log-in ends as it has to."""
    end = server(issuer, expected, now_s)
    answer = end.next(initial(token))
    if answer.user is None:
        assert answer == TOLD
        with pytest.raises(AuthenticationFailed, match=r'^\{"status":"invalid_token"\}$'):
            end.next(b"\x01")
    return answer.user


# --- Good ones


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_token_of_every_algorithm_is_believed(tmp_path: Path, algorithm: str) -> None:
    issuer = issuer_in(tmp_path, algorithm)
    assert server(issuer).next(initial(issuer.issue("alice", exp=NOW + 60))) == Answer(
        b"", "alice", (NOW + 60) * 1000
    )
    other = issuer_in(tmp_path / "..", algorithm)
    assert outcome(issuer, other.issue("alice")) is None
    other.key_id = issuer.key_id
    assert outcome(issuer, other.issue("alice")) is None


def test_our_own_client_logs_in_and_says_goodbye(issuer: TokenIssuer) -> None:
    def client(token: str) -> OAuthBearer:
        return OAuthBearer(
            lambda: Token(Secret(token), None, 0.0, extensions={"logicalCluster": "lkc-1"}), {"pool": "p"}
        )

    mine = client(issuer.issue("alice"))
    answer = server(issuer).next(mine.next(None) or b"")
    assert answer.user == "alice"
    assert mine.next(answer.message) is None
    end, refused = server(issuer), client(issuer.issue("alice", lifetime_s=-60))
    assert refused.next(end.next(refused.next(None) or b"").message) == b"\x01"
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        end.next(b"\x01")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_another_library_makes_and_believes_the_same(tmp_path: Path, algorithm: str) -> None:
    jws, jwk = pytest.importorskip("joserfc.jws"), pytest.importorskip("joserfc.jwk")
    issuer = issuer_in(tmp_path, algorithm)
    public = jwk.KeySet.import_key_set(json.loads(Path(issuer.jwks_path).read_text()))
    assert (
        json.loads(jws.deserialize_compact(issuer.issue("alice"), public, algorithms=[algorithm]).payload)[
            "sub"
        ]
        == "alice"
    )
    theirs = (
        jwk.RSAKey.generate_key(2048)
        if algorithm[0] in "RP"
        else jwk.ECKey.generate_key({"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}[algorithm])
    )
    (tmp_path / "theirs.json").write_text(
        json.dumps({"keys": [{**theirs.as_dict(private=False), "kid": "a"}]})
    )
    claims = json.dumps({"sub": "bob", "iat": NOW, "exp": NOW + 60}).encode()
    text = jws.serialize_compact({"alg": algorithm, "kid": "a"}, claims, theirs, algorithms=[algorithm])
    keys = Jwks(source_of((tmp_path / "theirs.json").as_uri()), 3600)
    assert OAuthBearerServer(keys, Expected(), lambda: NOW).next(initial(text)).user == "bob"


RFC_7515_A3 = (
    "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ."
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
    {
        "kty": "EC",
        "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    },
)


def test_the_example_of_the_rfc_is_signed_right() -> None:
    from fairlead_kafka.security.jwks import parse_jwks

    text, fields = RFC_7515_A3
    (key,) = parse_jwks(json.dumps({"keys": [fields]}).encode())
    token = taken_apart(text)
    assert is_signed_by(token, key.key)
    assert not is_signed_by(token._replace(signature=bytes(64)), key.key)
    assert not is_signed_by(token._replace(signature=token.signature + b"\0"), key.key)
    assert not is_signed_by(token._replace(algorithm="ES384"), key.key)
    assert not is_signed_by(token._replace(algorithm="RS256"), key.key)
    with pytest.raises(ValueError, match="when it was issued"):
        believed(token, Expected(), 1_300_000_000)


# --- Made up ones


def test_a_token_by_a_secret_or_by_nothing_is_never_believed(issuer: TokenIssuer) -> None:
    """The public key as the secret of HS256, "none", and a key that the token brings along."""
    payload = {"sub": "alice", "iat": NOW, "exp": NOW + 60}
    good = issuer.issue("alice")
    kid = taken_apart(good).key_id
    fields = json.loads(Path(issuer.jwks_path).read_text())["keys"][0]
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = issuer.key.public_key()
    secrets = [
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        json.dumps(fields).encode(),
        b"",
    ]
    for algorithm, hashed in (("HS256", "sha256"), ("HS384", "sha384"), ("HS512", "sha512")):
        for secret in secrets:
            said = f"{encoded({'alg': algorithm, 'kid': kid})}.{encoded(payload)}"
            assert outcome(issuer, f"{said}.{encoded(hmac.digest(secret, said.encode(), hashed))}") is None
    for algorithm in (
        "none",
        "None",
        "NONE",
        "nOnE",
        "",
        None,
        0,
        ["RS256"],
        "rs256",
        "RS1",
        "EdDSA",
        "ES256K",
        "PBES2-HS256+A128KW",
        "dir",
    ):
        said = f"{encoded({'alg': algorithm, 'kid': kid})}.{encoded(payload)}"
        for signature in ("", encoded(b"x"), good.rpartition(".")[2]):
            assert outcome(issuer, f"{said}.{signature}") is None
    stranger = issuer_in(Path(issuer.jwks_path).parent / "..")
    own = json.loads(Path(stranger.jwks_path).read_text())["keys"][0]
    for more in ({"jwk": own}, {"jku": stranger.jwks_url}, {"x5u": stranger.jwks_url, "x5c": ["x"]}):
        assert outcome(issuer, signed(stranger, {"alg": "RS256", "kid": kid, **more}, payload)) is None


@pytest.mark.parametrize(
    ("meant", "said"),
    [("RS256", "PS256"), ("RS256", "RS512"), ("PS256", "RS256"), ("ES256", "RS256"), ("ES256", "ES384")],
)
def test_a_signature_of_another_algorithm_is_wrong(tmp_path: Path, meant: str, said: str) -> None:
    issuer = issuer_in(tmp_path, meant)
    kid = taken_apart(issuer.issue("alice")).key_id
    payload = {"sub": "alice", "iat": NOW, "exp": NOW + 60}
    assert outcome(issuer, signed(issuer, {"alg": meant, "kid": kid}, payload)) == "alice"
    assert outcome(issuer, signed(issuer, {"alg": said, "kid": kid}, payload)) is None


CLAIMS: list[tuple[dict[str, Any], Expected, str | None]] = [
    ({}, Expected(), "alice"),
    ({"sub": "  bob\n"}, Expected(), "bob"),
    ({"exp": NOW - 29}, Expected(), "alice"),
    ({"exp": NOW - 30}, Expected(), None),
    ({"exp": NOW}, Expected(skew_s=0), None),
    ({"exp": NOW + 0.5, "iat": NOW - 0.5}, Expected(skew_s=0), "alice"),
    ({"exp": None}, Expected(), None),
    ({"iat": None}, Expected(), None),
    ({"exp": str(NOW + 60)}, Expected(), None),
    ({"exp": True}, Expected(), None),
    ({"exp": 1e300}, Expected(), None),
    ({"exp": 10**30}, Expected(), None),
    ({"exp": -1}, Expected(), None),
    ({"iat": NOW + 31}, Expected(), None),
    ({"iat": NOW + 29}, Expected(), "alice"),
    ({"iat": NOW + 20, "exp": NOW + 10}, Expected(), None),
    ({"nbf": NOW + 29}, Expected(), "alice"),
    ({"nbf": NOW + 31}, Expected(), None),
    ({"nbf": NOW + 20, "exp": NOW + 10}, Expected(), None),
    ({"nbf": "soon"}, Expected(), None),
    ({"sub": None}, Expected(), None),
    ({"sub": ""}, Expected(), None),
    ({"sub": " "}, Expected(), None),
    ({"sub": 7}, Expected(), None),
    ({"sub": ["alice"]}, Expected(), None),
    ({"sub": "\ud800"}, Expected(), None),
    ({"sub": "x" * 32_768}, Expected(), None),
    ({"sub": "x" * 32_767}, Expected(), "x" * 32_767),
    ({"upn": "carol"}, Expected(user_claim="upn"), "carol"),
    ({}, Expected(user_claim="upn"), None),
    ({"aud": "kafka"}, Expected(), None),
    ({"aud": []}, Expected(), None),
    ({"iss": 7}, Expected(), None),
    ({"jti": 7}, Expected(), None),
    ({"aud": "kafka"}, Expected(audiences=("other", "kafka")), "alice"),
    ({"aud": ["x", "kafka"]}, Expected(audiences=("kafka",)), "alice"),
    ({"aud": ["x"]}, Expected(audiences=("kafka",)), None),
    ({"aud": "kafka2"}, Expected(audiences=("kafka",)), None),
    ({"aud": []}, Expected(audiences=("kafka",)), None),
    ({"aud": {"kafka": 1}}, Expected(audiences=("kafka",)), None),
    ({"aud": [["kafka"]]}, Expected(audiences=("kafka",)), None),
    ({}, Expected(audiences=("kafka",)), None),
    ({"iss": "https://idp/"}, Expected(issuer="https://idp/"), "alice"),
    ({"iss": "https://idp"}, Expected(issuer="https://idp/"), None),
    ({"iss": "https://idp/x"}, Expected(issuer="https://idp/"), None),
    ({"iss": ["https://idp/"]}, Expected(issuer="https://idp/"), None),
    ({}, Expected(issuer="https://idp/"), None),
    ({"iss": "anybody"}, Expected(), "alice"),
    ({"scope": "read write"}, Expected(), "alice"),
    ({"scope": ["read", "write"]}, Expected(), "alice"),
    ({"scope": 7}, Expected(), "alice"),
    ({"scope": ""}, Expected(), None),
    ({"scope": ["read", " read"]}, Expected(), None),
    ({"scope": ["read", None]}, Expected(), None),
    ({"scp": ["read", 7]}, Expected(scope_claim="scp"), None),
]


@pytest.mark.parametrize(("claims", "expected", "user"), CLAIMS, ids=range(len(CLAIMS)))
def test_claims_have_to_hold_here_and_now(
    issuer: TokenIssuer, claims: dict[str, Any], expected: Expected, user: str | None
) -> None:
    said = {"iat": NOW - 60, "exp": NOW + 60, **claims}
    assert outcome(issuer, issuer.issue("alice", **said), expected) == user


def test_scopes_are_read(issuer: TokenIssuer) -> None:
    for said, scopes in (
        ("read write", {"read write"}),
        ([" a", "b"], {"a", "b"}),
        ({"a": 1}, set()),
        (None, set()),
    ):
        assert believed(taken_apart(issuer.issue("alice", scope=said)), Expected(), NOW).scopes == scopes


@pytest.mark.parametrize(
    ("header", "payload"),
    [
        (b'{"alg":"RS256","alg":"RS256"}', None),
        (b'{"alg":"none","alg":"RS256"}', None),
        (b'["RS256"]', None),
        (b"RS256", None),
        (b"\xff{}", None),
        (b"[" * 20_000, None),
        ({"alg": "RS256", "crit": ["exp"], "exp": 1}, None),
        ({"alg": "RS256", "crit": []}, None),
        ({"alg": "RS256", "b64": False}, None),
        ({"alg": "RS256", "kid": 7}, None),
        ({"alg": "RS256", "kid": "x" * 1001}, None),
        ({"alg": "RS256", "kid": "nobody's"}, None),
        ({"alg": "RS256"}, b'{"sub":"alice","iat":1,"exp":NaN}'),
        ({"alg": "RS256"}, b'{"sub":"alice","iat":1,"exp":Infinity}'),
        ({"alg": "RS256"}, b'{"sub":"alice","iat":1,"exp":' + b"9" * 5000 + b"}"),
        ({"alg": "RS256"}, b'{"sub":"alice","sub":"admin","iat":1,"exp":99999999999}'),
        ({"alg": "RS256"}, b"{" * 20_000),
        ({"alg": "RS256"}, b'"alice"'),
        ({"alg": "RS256", "cty": "JWT"}, None),
        ({"alg": "RS256"}, ('{"sub":"' + "é" * 16_384 + '","iat":1,"exp":99999999999}').encode()),
        ({"alg": "RS256"}, b""),
    ],
)
def test_a_token_that_can_be_read_in_two_ways_or_in_none_is_refused(
    issuer: TokenIssuer, header: Any, payload: Any
) -> None:
    claims = {"sub": "alice", "iat": NOW, "exp": NOW + 60} if payload is None else payload
    assert outcome(issuer, signed(issuer, header, claims)) is None


def test_without_a_key_id_the_first_key_of_the_kind_is_taken(issuer: TokenIssuer) -> None:
    payload = {"sub": "alice", "iat": NOW, "exp": NOW + 60}
    assert outcome(issuer, signed(issuer, {"alg": "RS256"}, payload)) == "alice"
    assert outcome(issuer, signed(issuer, {"alg": "ES256"}, payload)) is None


# --- The message around a token


def messages(token: bytes) -> Iterator[bytes]:
    auth = b"auth=Bearer " + token
    yield from (
        b"", b"n", b"n,,", b"n,,\x01", b"n,,\x01\x01", b"\x01", b"y,," + b"\x01" + auth + b"\x01\x01",
        b"p=x,,\x01" + auth + b"\x01\x01",
        b"n,,\x01" + auth, b"n,,\x01" + auth + b"\x01", b"n,,\x01" + auth + b"\x01\x01\x01",
        b"n,,\x01" + auth + b"\x01" + auth + b"\x01\x01",
        b"n,,\x01Auth=Bearer " + token + b"\x01\x01", b"n,,\x01auth=Basic " + token + b"\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer " + token + b" x\x01\x01", b"n,,\x01" + auth + b"\x01a1=x\x01\x01",
        b"n,,\x01" + auth + b"\x01a=\x01\x01",
        b"n,,\x01" + auth + b"\x01a=\x02\x01\x01", b"n,,\x01" + auth + b"\x01a=\xc3\xa9\x01\x01",
        b"n,,\x01pool=p\x01\x01",
        b"n,,\x01" + auth + b"\x01" + b"a=x\x01" * (EXTENSIONS_MAX + 1) + b"\x01",
        b"n,,\x01" + auth + b"\x01a=" + b"x" * MESSAGE_MAX_BYTES + b"\x01\x01",
        b"n,a=,\x01" + auth + b"\x01\x01", b"n,a=b=c,\x01" + auth + b"\x01\x01",
    )  # fmt: skip


def test_a_message_that_is_none_is_refused_and_its_token_not_looked_at(issuer: TokenIssuer) -> None:
    for nth, message in enumerate(messages(issuer.issue("alice").encode())):
        with pytest.raises(AuthenticationFailed) as raised:
            server(issuer).next(message)
        assert str(raised.value) == REFUSED, nth


def test_extensions_and_the_user_s_own_name_may_be_given(issuer: TokenIssuer) -> None:
    token = issuer.issue("a,b=c")
    assert server(issuer).next(initial(token, more=b"a=x\x01" * EXTENSIONS_MAX)).user == "a,b=c"
    assert server(issuer).next(initial(token, more=b"pool=a=b c\t\x01")).user == "a,b=c"
    assert server(issuer).next(initial(token, b"n,a=a=2Cb=3Dc,")).user == "a,b=c"
    with pytest.raises(
        AuthenticationFailed,
        match=r"authorization id \(bob\) that is different from the token's principal name \(a,b=c\)",
    ):
        server(issuer).next(initial(token, b"n,a=bob,"))


def test_after_a_bad_token_there_is_no_second_try(issuer: TokenIssuer) -> None:
    end = server(issuer)
    assert end.next(initial("a.b.c")) == TOLD
    with pytest.raises(AuthenticationFailed, match="invalid credentials"):
        end.next(initial(issuer.issue("alice")))


def test_a_token_that_is_too_long_is_not_read(issuer: TokenIssuer) -> None:
    huge = issuer.issue("alice", junk="x" * TOKEN_MAX_CHARACTERS)
    assert outcome(issuer, huge[: TOKEN_MAX_CHARACTERS + 1]) is None
    with pytest.raises(AuthenticationFailed):
        server(issuer).next(initial(huge))


@settings(max_examples=300)
@given(st.data())
def test_no_change_of_a_token_is_believed(issuer: TokenIssuer, data: st.DataObject) -> None:
    good = issuer.issue("alice", exp=NOW + 60, iat=NOW)
    at = data.draw(st.integers(0, len(good) - 1))
    piece = data.draw(st.text("ABCxyz019-_.=+/", max_size=3))
    changed = good[:at] + piece + good[at + data.draw(st.integers(0, 3)) :]
    changes: list[Callable[[str], str]] = [
        lambda text: text,
        lambda text: text[::-1],
        lambda text: text + text,
    ]
    changed = data.draw(st.sampled_from(changes))(changed)
    believed_user = None
    try:
        believed_user = server(issuer).next(initial(changed)).user
    except AuthenticationFailed:
        return
    same = [taken_apart(text)[1:] if believed_user else () for text in (good, changed)]
    assert believed_user is None or same[0] == same[1], (
        "but for the last bits of its base64, which say nothing"
    )
