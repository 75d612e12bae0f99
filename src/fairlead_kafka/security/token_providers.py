"""Tokens from code: a callable of the user's (confluent-kafka's `oauth_cb`), and Amazon's package
for MSK."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType

from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError, ConnectionFailed, FairleadError
from fairlead_kafka.security.tokens import EXPIRES_MAX_S, EXPIRES_MIN_S, Token, make_token, number, shown

ROLE_SESSION_NAME = "aws-msk-iam-auth"
"""The name of a role's session where none is given: that of Amazon's Java library."""

_TRANSIENT = frozenset(
    {
        "ConnectionError",
        "TimeoutError",
        "Timeout",
        "HTTPClientError",
        "ClientConnectionError",
        "TransportError",
        "URLError",
        "gaierror",
    }
)
"""Names of the errors that say that something could not be reached: Python's own, and those of
requests, botocore, aiohttp, httpx, google-auth and urllib. They are told by name, for nobody has
all these packages."""
_MSK_PACKAGE = "aws_msk_iam_sasl_signer"
_MSK_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.[a-z.]+$")
"""Host of a provisioned cluster (`b-1.name.id.c2.kafka.eu-west-1.amazonaws.com`), or of a
serverless one (`….kafka-serverless.…`); group 1 is its region."""
_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")


class CallableSource:
    """Gets tokens from a callable of the user's: a function or a coroutine function (run to its end
    on the calling thread), or the dotted path of one.

    A path is `package.module.name` or `package.module:name`, and is imported when the first token
    is fetched; of a class, an instance is called. It is called with `argument` if that is given,
    without one otherwise. `setting` is the config key that gave the callable, for errors.
    """

    def __init__(
        self,
        provider: object,
        *,
        argument: str | None = None,
        setting: str = "sasl.oauthbearer.token.provider",
    ) -> None:
        self._provider = provider
        self._callable: Callable[..., object] | None = None
        self._arguments = () if argument is None else (argument,)
        self._setting = setting
        name = (
            provider
            if isinstance(provider, str)
            else getattr(provider, "__qualname__", type(provider).__name__)
        )
        self._origin = f"{setting} ({name})"

    def fetch(self, now_s: float) -> Token:
        """A new token, asked for at `now_s` (seconds since 1970). Blocks for as long as the
        callable does.

        The callable returns the token (text or bytes), or (token, when it expires in seconds since
        1970), and after these a principal and a dict of SASL extensions if it likes.
        ConnectionFailed if it raised an error that says that something could not be reached,
        AuthenticationFailed if it raised any other or returned something else, ConfigError if it
        cannot be found.
        """
        if self._callable is None:
            self._callable = _resolved(self._provider, self._setting)
        provider = self._callable
        return _token_of(_called(lambda: provider(*self._arguments), self._origin), now_s, self._origin)


class MskSource:
    """Tokens of Amazon MSK (IAM), signed by Amazon's own package.

    `hosts` are those of `bootstrap.servers`, with or without ports; the others are the JAAS options
    awsProfileName, awsRoleArn, awsRoleSessionName and awsStsRegion of Amazon's Java library. With
    both a profile and a role the profile counts, as in that library. Without either, the
    credentials that boto3 finds.
    """

    def __init__(
        self,
        hosts: Iterable[str],
        *,
        profile: str | None = None,
        role_arn: str | None = None,
        role_session_name: str | None = None,
        sts_region: str | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """Make a source of tokens for the region of `hosts`. ConfigError if the package is not
        installed, or neither a host nor the environment names the region."""
        self.region = msk_region(hosts, environment)
        self._profile = profile
        self._role_arn = role_arn
        self._session_name = role_session_name or ROLE_SESSION_NAME
        self._sts_region = sts_region
        if not _is_installed(_MSK_PACKAGE):
            raise ConfigError(
                "sasl.mechanism AWS_MSK_IAM needs the package aws-msk-iam-sasl-signer-python: pip install "
                '"fairlead-kafka[msk]"'
            )

    def fetch(self, now_s: float) -> Token:
        """A new token, signed at `now_s` (seconds since 1970). Blocks while AWS is asked for
        credentials. ConfigError if its package is not installed.

        ConnectionFailed if AWS cannot be reached, AuthenticationFailed if there are no credentials
        or they are refused.
        """
        try:
            signer = import_module(f"{_MSK_PACKAGE}.MSKAuthTokenProvider")
        except ImportError as error:
            raise ConfigError(
                "sasl.mechanism AWS_MSK_IAM: package aws-msk-iam-sasl-signer-python cannot be imported "
                f"({error})"
            ) from error
        origin = f"AWS_MSK_IAM in {self.region}, with AWS credentials of {self._credentials()}"
        value = _called(lambda: self._signed(signer), origin)
        text, expiry = value if isinstance(value, tuple) and len(value) == 2 else (None, None)
        expires_ms = number(expiry)
        if expires_ms is None:
            raise AuthenticationFailed(
                f"{origin}: no token and expiry were returned: update aws-msk-iam-sasl-signer-python"
            )
        return make_token(text, now_s, origin, expires_s=expires_ms / 1000)

    def _signed(self, signer: ModuleType) -> object:
        if self._profile:
            return signer.generate_auth_token_from_profile(self.region, self._profile)
        if self._role_arn and self._sts_region:
            return signer.generate_auth_token_from_credentials_provider(
                self.region, _assumed_role(self._role_arn, self._session_name, self._sts_region)
            )
        if self._role_arn:
            return signer.generate_auth_token_from_role_arn(self.region, self._role_arn, self._session_name)
        return signer.generate_auth_token(self.region)

    def _credentials(self) -> str:
        if self._profile:
            return f"profile {self._profile!r}"
        return f"role {self._role_arn!r}" if self._role_arn else "this process"


def msk_region(hosts: Iterable[str], environment: Mapping[str, str]) -> str:
    """The AWS region of an MSK cluster: the one that a host names, else that of AWS_REGION or
    AWS_DEFAULT_REGION.

    ConfigError if none of them names one.
    """
    for host in hosts:
        found = _MSK_HOST.search(re.sub(r":\d+$", "", host.strip()).rstrip(".").lower())
        if found:
            return found[1]
    for name in _REGION_VARIABLES:
        if environment.get(name):
            return environment[name]
    raise ConfigError(
        "sasl.mechanism AWS_MSK_IAM needs the cluster's region: no host of bootstrap.servers names one (as "
        "in "
        "b-1.name.kafka.eu-west-1.amazonaws.com): set AWS_REGION in the environment"
    )


def _assumed_role(role_arn: str, session_name: str, sts_region: str) -> object:
    """A provider of a role's credentials that asks STS in `sts_region`, which Amazon's package has
    no parameter for."""
    boto3 = import_module("boto3")
    credentials = import_module("botocore.credentials")

    def load(_self: object) -> object:
        sts = boto3.client("sts", region_name=sts_region)
        given = sts.assume_role(RoleArn=role_arn, RoleSessionName=session_name)["Credentials"]
        return credentials.Credentials(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])

    return type("AssumedRole", (credentials.CredentialProvider,), {"load": load})()


def _is_installed(package: str) -> bool:
    from importlib.util import find_spec

    return sys.modules.get(package) is not None or (
        package not in sys.modules and find_spec(package) is not None
    )


def _called(call: Callable[[], object], origin: str) -> object:
    """The result of `call`, or of awaiting it.

    An exception of it becomes ConnectionFailed or AuthenticationFailed, whose text names `origin`.
    """
    import inspect

    try:
        value = call()
        if inspect.isawaitable(value):
            import asyncio

            value = asyncio.run(_awaited(value))
        return value
    except (AuthenticationFailed, ConnectionFailed):
        raise
    except BaseException as error:
        if (
            not isinstance(error, Exception) and type(error).__name__ != "CancelledError"
        ):  # which a coroutine may raise by itself
            raise
        names = {kind.__name__ for kind in type(error).__mro__}
        passes = bool(names & _TRANSIENT) and "HTTPError" not in names
        raised = f"{type(error).__name__}: {shown(str(error))}" if str(error) else type(error).__name__
        failure: type[FairleadError] = ConnectionFailed if passes else AuthenticationFailed
        raise failure(f"{origin} gave no token: it raised {raised}") from error


async def _awaited(value: Awaitable[object]) -> object:
    return await value


def _resolved(provider: object, setting: str) -> Callable[..., object]:
    """The callable that `provider` is or names. ConfigError if there is none."""
    found = provider
    if isinstance(provider, str):
        module_name, _, attributes = (
            provider.strip().partition(":") if ":" in provider else provider.strip().rpartition(".")
        )
        try:
            found = import_module(module_name)
            for attribute in attributes.split("."):
                found = getattr(found, attribute)
            found = found() if isinstance(found, type) else found
        except Exception as error:  # a module may raise anything while it is imported
            raise ConfigError(
                f"{setting}: cannot import {provider!r} ({type(error).__name__}: {shown(str(error))}); "
                "give the dotted path of a callable in an importable module"
            ) from error
    if not callable(found):
        raise ConfigError(
            f"{setting}: {provider!r} is a {type(found).__name__}, which cannot be called; give a callable "
            "that returns a token"
        )
    return found


def _token_of(value: object, now_s: float, origin: str) -> Token:
    """The token that a callable returned. AuthenticationFailed, whose text shows types and no
    values, if `value` is no token."""
    if not isinstance(value, tuple | list):
        return make_token(value, now_s, origin)
    if not 2 <= len(value) <= 4:
        raise AuthenticationFailed(
            f"{origin} returned {len(value)} items: return the token, (token, expiry), or (token, expiry, "
            "principal, extensions)"
        )
    text, expiry, principal, extensions = [*list(value), None, None][:4]
    expires_s = None if expiry is None else number(expiry)
    if expiry is not None and (expires_s is None or not EXPIRES_MIN_S <= expires_s <= EXPIRES_MAX_S):
        shown_expiry = f"of type {type(expiry).__name__}" if expires_s is None else f"{expires_s:.0f}"
        raise AuthenticationFailed(
            f"{origin} gave a token with expiry {shown_expiry}: give seconds since 1970, and neither "
            "milliseconds nor how long it lives"
        )
    return make_token(text, now_s, origin, expires_s=expires_s, principal=principal, extensions=extensions)
