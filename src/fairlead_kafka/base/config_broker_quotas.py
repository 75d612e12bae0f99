"""Configs of a broker about client quotas (KIP-13, KIP-599): the time over which rates are
measured. Kafka's keys and defaults."""

from __future__ import annotations

from typing import Final

from fairlead_kafka.base.config import ConfigKey, ConfigType, at_least

_T = ConfigType
_BROKER = ("broker",)

SAMPLES: Final = "quota.window.num"
WINDOW_S: Final = "quota.window.size.seconds"
CONTROLLER_SAMPLES: Final = "controller.quota.window.num"
CONTROLLER_WINDOW_S: Final = "controller.quota.window.size.seconds"

QUOTA_KEYS = (
    ConfigKey(
        SAMPLES,
        _T.INT,
        11,
        "Windows over which the rate of a client is measured: so many whole ones less one, and the present "
        "one.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(WINDOW_S, _T.INT, 1, "How long each of them is, in seconds.", _BROKER, at_least(1)),
    ConfigKey(
        CONTROLLER_SAMPLES,
        _T.INT,
        11,
        "For how many windows a client may save up what controller_mutation_rate grants it, to spend it at "
        "once.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(CONTROLLER_WINDOW_S, _T.INT, 1, "How long each of them is, in seconds.", _BROKER, at_least(1)),
)
