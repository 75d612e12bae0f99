"""Checks on the driver before the tasks of a write begin: whether it can work, and whether its
topic exists."""

from __future__ import annotations

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import FairleadError, ItemsFailed
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.client import Admin
from fairlead_kafka.spark.exactly_once.readiness import check_ready
from fairlead_kafka.spark.exactly_once.settings import settings_for
from fairlead_kafka.spark.options import WriteOptions
from fairlead_kafka.spark.topics import did_you_mean

LOGGER = GuardedLogger("fairlead_kafka.spark")
ASK_TIMEOUT_S = 1.0
"""Seconds to ask for the topic of an at-least-once write: its driver needs no way to the brokers,
so it does not wait for one."""


def plan_write(options: WriteOptions) -> None:
    """Raise the error by which an exactly-once write is impossible, if there is one
    (`check_ready`). A topic that does not exist is only warned of: brokers may create it."""
    if options.exactly_once is None and options.topic is None:
        return
    with Admin(settings_for("admin", options.client)) as admin:
        if options.exactly_once is not None:
            check_ready(admin, options.client, options.exactly_once)
            _warn_of_missing(admin, options.topic)
            return
        try:
            admin.connect(ASK_TIMEOUT_S)
            _warn_of_missing(admin, options.topic)
        except FairleadError as error:
            LOGGER.debug("whether the topic %s is there was not answered: %s", options.topic, error)


def _warn_of_missing(admin: Admin, topic: str | None) -> None:
    if topic is None:
        return
    try:
        admin.describe_topics([topic])
    except ItemsFailed as failed:
        if failed.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            LOGGER.warning(
                "option topic: there is no topic %s yet%s; if the brokers create topics, it is made with "
                "their default of partitions",
                topic,
                did_you_mean(topic, admin.list_topics()),
            )
