"""Checks before a task writes a row: whether the batch can be committed at all.

They run on the driver. A task leaves its transaction open, and while one is open read_committed
readers wait; so a write that cannot be committed would delay them for minutes, and should fail
before the first row. A missing right to write to the log is only found when a decision is written.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, ConfigError, ItemsFailed, UnsupportedVersion
from fairlead_kafka.client import Admin, ConfigResource
from fairlead_kafka.spark.exactly_once.errors import too_long
from fairlead_kafka.spark.exactly_once.log import see_to_log_topic
from fairlead_kafka.spark.exactly_once.settings import Guarantee, transaction_timeout_ms

ALLOWED = "transaction.max.timeout.ms"


def check_ready(admin: Admin, client: Mapping[str, str], guarantee: Guarantee) -> None:
    """Raise ConfigError or BrokerError if a commit could not work; creates the topic of the commit
    log if it does not exist."""
    see_to_log_topic(admin, guarantee.log_topic)
    _check_transactions(admin, guarantee)
    _check_timeout(admin, client)


def _check_transactions(admin: Admin, guarantee: Guarantee) -> None:
    """Check that transactions can be described and listed, as a commit needs: Kafka 3.0 or newer,
    and the right to. BrokerError or UnsupportedVersion if not."""
    driver = f"{guarantee.id_prefix}-{guarantee.write_name or ''}-driver"
    try:
        admin.describe_transactions([driver])
    except UnsupportedVersion as error:
        raise ConfigError(
            "deliveryGuarantee: exactly-once writes ask brokers about open transactions, which Apache Kafka "
            "can tell since 3.0, and these "
            "brokers cannot; write with deliveryGuarantee=at-least-once"
        ) from error
    except ItemsFailed as failed:
        # Of a streaming query nobody knows the name here, and rights may be given by name.
        if failed.code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED and guarantee.app_id is not None:
            raise BrokerError(
                failed.code,
                f"exactly-once writes of txnAppId={guarantee.app_id} need Write and Describe on "
                f"transactional ids that begin with {guarantee.id_prefix}-{guarantee.app_id}-; allow them, "
                "or choose names that are allowed with transactionalIdPrefix",
            ) from failed


def _check_timeout(admin: Admin, client: Mapping[str, str]) -> None:
    """Raise ConfigError if brokers do not allow transactions as long as the client's
    transaction.timeout.ms. Only one broker is asked, for all are set alike."""
    resource = ConfigResource.broker(admin.describe_cluster().nodes[0].node_id)
    try:
        entry = admin.describe_configs([resource])[resource].get(ALLOWED)
    except ItemsFailed:
        return  # without the right to ask, the first task tells
    timeout_ms, allowed = transaction_timeout_ms(client), entry.value if entry is not None else None
    if allowed is not None and timeout_ms > int(allowed):
        raise ConfigError(too_long(timeout_ms, int(allowed)))
