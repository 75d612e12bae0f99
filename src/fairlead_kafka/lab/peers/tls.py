"""Each client's TLS configs, for measured programs; values can be written as JSON."""

from __future__ import annotations


def settings_of(system: str, trust: str | None) -> dict[str, str]:
    """Configs with which the client of `system` trusts the authority in the PEM file `trust`; {}
    without one.

    `system`: its name in experiments.
    """
    if trust is None:
        return {}
    if system.startswith("fairlead"):
        return {"security.protocol": "SSL", "ssl.truststore.location": trust}
    if system.startswith(("confluent", "kafkarrow")):
        return {"security.protocol": "ssl", "ssl.ca.location": trust}
    if system == "java":
        return {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": trust}
    if system == "kafka-python":
        return {"security_protocol": "SSL", "ssl_cafile": trust}
    return {"security_protocol": "SSL", "cafile": trust}
