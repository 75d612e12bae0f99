"""Authorization of operations: Kafka's `StandardAuthorizer` over the ACLs of the cluster's image
(KIP-11, KIP-290, KIP-679, KIP-801).

Theory of operation. A handler asks whether the principal of its session may do an operation on a
resource. An ACL (`base.acls.AclBinding`) applies if its pattern has the resource's name, if it is
for this principal or for everyone ("User:*"), from this host or from all ("*"), and if its
operation covers the one asked for (`rules`). Then:

    a super user ────────────────────────────▶ yes
    an ACL that denies applies ──────────────▶ no, whatever else there is
    an ACL that allows applies ──────────────▶ yes
    no pattern has the name at all ──────────▶ as allow.everyone.if.no.acl.found says
    else ────────────────────────────────────▶ no

A pattern is a name ("orders"; "*" has every name of its type) or a prefix. `index` finds those that
have a name with one look-up of the name, one of "*", and one of each length that a prefix of this
type has, and within them those of a principal, so ten thousand ACLs cost no more than ten.
`authorizer` decides, and keeps its decisions until an ACL is created or deleted.

A broker has an authorizer if `authorizer.class.name` says so, made when its image is complete and
updated with each change of it; `check` compares the index and the kept decisions with the image.
Without an authorizer every principal may do everything, and handlers test one attribute
(`Session.may`). A principal that is denied something is named in the log
`fairlead_kafka.authorizer`, at level INFO, as in Kafka's.
"""

from fairlead_kafka.broker.authorizer.authorizer import Authorizer
from fairlead_kafka.broker.authorizer.rules import host_of

__all__ = ["Authorizer", "host_of"]
