"""Calls of admin clients about ACLs, SCRAM users and quotas, as steps that a blocking or an
awaiting class drives."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial

from fairlead_kafka import admin
from fairlead_kafka.admin import (
    ClientQuotaEntity,
    ClientQuotaFilter,
    SaltedPassword,
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from fairlead_kafka.admin.acl_items import check_binding, check_filter
from fairlead_kafka.admin.quota_items import check_quotas, checked_quota_filter
from fairlead_kafka.admin.user_items import SALT_BYTES, check_alteration, salted_password
from fairlead_kafka.base.acls import AclBinding, AclFilter
from fairlead_kafka.client.admin_performing import Performing, distinct
from fairlead_kafka.client.hosting import Offload, Steps, wait_for


class AccessCalls:
    """Calls about ACLs, SCRAM passwords and client quotas, as steps; `Admin` has what each does.
    `offload` runs slow work on a thread, so that an event loop goes on."""

    def __init__(self, performing: Performing, offload: Offload | None) -> None:
        self.check = performing.check
        self._perform = performing.perform
        self._offload = offload

    def create_acls(
        self, bindings: Iterable[AclBinding], timeout_s: float | None
    ) -> Steps[dict[AclBinding, None]]:
        """Add entries of access control lists; see `Admin.create_acls` for results, time-out and
        errors."""
        wanted = [AclBinding(*each) for each in bindings]
        for number, one in enumerate(wanted):
            check_binding(f"create_acls: bindings[{number}]", one)
        return self._perform("creating ACLs", wanted, lambda _: admin.create_acls(wanted), timeout_s)

    def describe_acls(self, filter: AclFilter, timeout_s: float | None) -> Steps[list[AclBinding]]:
        """List entries of access control lists; see `Admin.describe_acls` for results, time-out and
        errors."""
        wanted = AclFilter(*filter)
        check_filter("describe_acls: filter", wanted)
        return self._perform("describing ACLs:", [wanted], lambda _: admin.describe_acls(wanted), timeout_s)

    def delete_acls(
        self, filters: Iterable[AclFilter], timeout_s: float | None
    ) -> Steps[dict[AclFilter, list[AclBinding]]]:
        """Delete entries of access control lists; see `Admin.delete_acls` for results, time-out and
        errors."""
        wanted = [AclFilter(*each) for each in filters]
        for number, one in enumerate(wanted):
            check_filter(f"delete_acls: filters[{number}]", one)
        return self._perform("deleting ACLs:", wanted, lambda _: admin.delete_acls(wanted), timeout_s)

    def describe_user_scram_credentials(
        self, users: Iterable[str], timeout_s: float | None
    ) -> Steps[dict[str, list[ScramCredentialInfo]]]:
        """Describe users' SCRAM credentials; see `Admin.describe_user_scram_credentials` for
        results, time-out and errors."""
        wanted = distinct("describe_user_scram_credentials", users)
        script = admin.describe_user_scram_credentials(wanted)
        return self._perform("describing credentials of users", wanted, lambda _: script, timeout_s)

    def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialUpsertion | UserScramCredentialDeletion],
        timeout_s: float | None,
    ) -> Steps[dict[str, None]]:
        """Set and delete SCRAM passwords. An async client hashes them on a thread. See
        `Admin.alter_user_scram_credentials` for results, time-out and errors."""
        self.check()
        wanted = list(alterations)
        for number, one in enumerate(wanted):
            check_alteration(f"alter_user_scram_credentials: alterations[{number}]", one)
        distinct(
            "alter_user_scram_credentials", [f"{one.mechanism.mechanism} of {one.user}" for one in wanted]
        )
        ready: list[SaltedPassword | UserScramCredentialDeletion] = []
        for one in wanted:
            if isinstance(one, UserScramCredentialUpsertion):
                hashing = partial(salted_password, one, one.salt or os.urandom(SALT_BYTES))
                ready.append(
                    hashing() if self._offload is None else (yield from wait_for(self._offload(hashing)))
                )
            else:
                ready.append(one)
        script, users = (
            admin.alter_user_scram_credentials(ready),
            list(dict.fromkeys(one.user for one in wanted)),
        )
        return (yield from self._perform("altering credentials of users", users, lambda _: script, timeout_s))

    def describe_client_quotas(
        self, filter: ClientQuotaFilter, timeout_s: float | None
    ) -> Steps[dict[ClientQuotaEntity, dict[str, float]]]:
        """Describe client quotas; see `Admin.describe_client_quotas` for results, time-out and
        errors."""
        wanted = checked_quota_filter("describe_client_quotas: filter", filter)
        return self._perform(
            "describing client quotas", (), lambda _: admin.describe_client_quotas(wanted), timeout_s
        )

    def alter_client_quotas(
        self,
        changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        validate_only: bool,
        timeout_s: float | None,
    ) -> Steps[dict[ClientQuotaEntity, None]]:
        """Set and delete client quotas; see `Admin.alter_client_quotas` for results, time-out and
        errors."""
        for entity, quotas in changes.items():
            check_quotas("alter_client_quotas", entity, quotas)
        script = admin.alter_client_quotas(changes, validate_only=validate_only)
        return self._perform("altering quotas of", changes, lambda _: script, timeout_s)
