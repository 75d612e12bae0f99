"""SCRAM credentials of users: how they are made, and which changes are allowed (KIP-554; Kafka's
`ScramControlManager`)."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Sequence

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller.decisions import ScramAlteration
from fairlead_kafka.broker.controller.fold import scram_credential_record
from fairlead_kafka.broker.controller.image import ScramCredential
from fairlead_kafka.broker.controller.journal import Journal

SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""The protocol's number of a mechanism → its name."""
ITERATIONS_MIN, ITERATIONS_MAX = 4_096, 16_384
"""Kafka's bounds of a password's iterations: fewer are guessed too fast, more hold clients up."""
SALT_MAX_BYTES = 4_096
"""Most bytes of a salt (Kafka's tools make 16): every broker keeps it, and sends it to each client
that logs in."""


class Credentials:
    """Decides on changes of users' SCRAM credentials."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._image = journal.image

    def alter(self, alterations: Sequence[ScramAlteration]) -> list[BrokerError | None]:
        """Set and delete credentials; of a user all or none. For each alteration None, or the error
        of its user's."""
        twice = {
            key
            for key, count in Counter((each.user, each.mechanism) for each in alterations).items()
            if count > 1
        }
        wrong: dict[str, BrokerError] = {}
        for each in alterations:
            error = self._wrong(each, (each.user, each.mechanism) in twice)
            if error is not None:
                wrong.setdefault(each.user, error)
        records = [
            scram_credential_record(SCRAM_MECHANISMS[each.mechanism], each.user, each.credential)
            for each in alterations
            if each.user not in wrong
        ]
        if records:
            self._journal.commit(records)
        return [wrong.get(each.user) for each in alterations]

    def _wrong(self, one: ScramAlteration, twice: bool) -> BrokerError | None:
        if not one.user:
            return BrokerError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
        if one.mechanism not in SCRAM_MECHANISMS:
            return BrokerError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
        if twice:
            return BrokerError(
                ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
            )
        if one.credential is None:
            known = (SCRAM_MECHANISMS[one.mechanism], one.user) in self._image.scram_credentials
            text = "Attempt to delete a user credential that does not exist"
            return None if known else BrokerError(ErrorCode.RESOURCE_NOT_FOUND, text)
        if not one.credential.stored_key:
            return BrokerError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salted password must not be empty")
        if len(one.credential.salt) > SALT_MAX_BYTES:
            return BrokerError(
                ErrorCode.UNACCEPTABLE_CREDENTIAL, f"The salt may have {SALT_MAX_BYTES} bytes at most"
            )
        return iterations_error(one.credential)


def credential_of(mechanism: str, salted_password: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """The credential for a salted password (RFC 5802, 3); without keys if the password is empty.

    `mechanism` is one of SCRAM_MECHANISMS.
    """
    if not salted_password:
        return ScramCredential(salt, b"", b"", iterations)
    digest = digest_of(mechanism)
    stored_key = hashlib.new(digest, hmac.digest(salted_password, b"Client Key", digest)).digest()
    return ScramCredential(salt, stored_key, hmac.digest(salted_password, b"Server Key", digest), iterations)


def digest_of(mechanism: str) -> str:
    """The name in `hashlib` of a mechanism's hash: sha256 for SCRAM-SHA-256."""
    return mechanism.removeprefix("SCRAM-").replace("-", "").lower()


def iterations_error(credential: ScramCredential) -> BrokerError | None:
    """The error for too few or too many iterations; None: they are within bounds."""
    if credential.iterations < ITERATIONS_MIN:
        return BrokerError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if credential.iterations > ITERATIONS_MAX:
        return BrokerError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return None
