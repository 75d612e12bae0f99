"""Tokens from a file that another program writes, such as a side car or a cluster for tests
(Kafka's `FileJwtRetriever`)."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.security.tokens import TOKEN_MAX_CHARACTERS, Token, make_token


class FileSource:
    """Reads a token from the file at a `file:` URL, each time a token is needed. `setting` is the
    config key that has the URL, for errors.

    ConfigError if the URL names no file of this machine.
    """

    def __init__(self, url: str, setting: str) -> None:
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise ConfigError(f"{setting}: {url!r} names no file of this machine; write file:///folder/name")
        self._path = unquote(parts.path)
        self._setting = setting

    def fetch(self, now_s: float) -> Token:
        """The token that is in the file now. ConfigError if it cannot be read, AuthenticationFailed
        if its content is no token."""
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                text = file.read(TOKEN_MAX_CHARACTERS + 1)
        except OSError as error:
            raise ConfigError(
                f"{self._setting} {self._path}: cannot be read ({(error.strerror or str(error)).lower()})"
            ) from None
        return make_token(text.strip(), now_s, self._path)
