"""Kafka's error codes as one table; its columns are policies, from which every retry decision
comes.

`RETRY`: sending the same request again can succeed; `REFRESH`: the metadata is out of date;
`REFIND`: the coordinator moved; `FATAL`: this client can do no more. A caller may overrule the
table, which only knows the usual case. Source of numbers, names and retriability: Kafka's protocol
guide ("Error Codes").
"""

from __future__ import annotations

from enum import Flag
from typing import NamedTuple


class Policy(Flag):
    """Actions that an error code asks of a client, as flags: retry, refresh the metadata, and so
    on."""

    NOTHING = 0
    RETRY = 1
    REFRESH = 2
    REFIND = 4
    FATAL = 8


class ErrorPolicy(NamedTuple):
    """One error code: its number, name, policy, and meaning in words."""

    code: int
    name: str
    policy: Policy
    meaning: str

    @property
    def retriable(self) -> bool:
        """True if sending the same request again can succeed."""
        return Policy.RETRY in self.policy

    @property
    def refreshes_metadata(self) -> bool:
        """True if the metadata is out of date."""
        return Policy.REFRESH in self.policy

    @property
    def moves_coordinator(self) -> bool:
        """True if the coordinator has to be found again."""
        return Policy.REFIND in self.policy

    @property
    def fatal(self) -> bool:
        """True if this client can do no more."""
        return Policy.FATAL in self.policy


_NOTHING, _RETRY, _REFRESH, _REFIND, _FATAL = (
    Policy.NOTHING,
    Policy.RETRY,
    Policy.REFRESH,
    Policy.REFIND,
    Policy.FATAL,
)

# fmt: off
_ROWS: tuple[tuple[int, str, Policy, str], ...] = (
    (-1, "UNKNOWN_SERVER_ERROR", _NOTHING, "the broker failed in a way it did not expect; its own log says "
                                           "how"),
    (0, "NONE", _NOTHING, "no error"),
    (1, "OFFSET_OUT_OF_RANGE", _NOTHING, "the offset lies before the log's start or after its end"),
    (2, "CORRUPT_MESSAGE", _RETRY, "the batch failed its checksum or its size is wrong"),
    (3, "UNKNOWN_TOPIC_OR_PARTITION", _RETRY | _REFRESH, "the broker knows no such topic or partition"),
    (4, "INVALID_FETCH_SIZE", _NOTHING, "a fetch asks for no bytes, or for fewer than none"),
    (5, "LEADER_NOT_AVAILABLE", _RETRY | _REFRESH, "the partition has no leader at the moment"),
    (6, "NOT_LEADER_OR_FOLLOWER", _RETRY | _REFRESH, "the broker asked is not the partition's leader (or "
                                                     "replica)"),
    (7, "REQUEST_TIMED_OUT", _RETRY, "the broker gave up waiting for its replicas"),
    (8, "BROKER_NOT_AVAILABLE", _REFRESH, "the broker is down"),
    (9, "REPLICA_NOT_AVAILABLE", _RETRY | _REFRESH, "the broker holds no replica of the partition yet"),
    (10, "MESSAGE_TOO_LARGE", _NOTHING, "the batch is larger than max.message.bytes of the topic"),
    (11, "STALE_CONTROLLER_EPOCH", _NOTHING, "a broker has heard of a newer controller"),
    (12, "OFFSET_METADATA_TOO_LARGE", _NOTHING, "the text committed with an offset is longer than the broker "
                                                "takes"),
    (13, "NETWORK_EXCEPTION", _RETRY | _REFRESH, "the connection broke before an answer came"),
    (14, "COORDINATOR_LOAD_IN_PROGRESS", _RETRY, "the coordinator is still reading its state"),
    (15, "COORDINATOR_NOT_AVAILABLE", _RETRY | _REFIND, "no coordinator is running"),
    (16, "NOT_COORDINATOR", _RETRY | _REFIND, "the broker asked does not coordinate this group or "
                                              "transaction"),
    (17, "INVALID_TOPIC_EXCEPTION", _NOTHING, "the topic name is illegal, or the topic is internal"),
    (18, "RECORD_LIST_TOO_LARGE", _NOTHING, "the batch is larger than a segment of the log"),
    (19, "NOT_ENOUGH_REPLICAS", _RETRY, "fewer replicas in sync than min.insync.replicas; nothing was "
                                        "written"),
    (20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", _RETRY, "written, but replicas fell out of sync before it was "
                                                     "safe"),
    (21, "INVALID_REQUIRED_ACKS", _NOTHING, "acks must be -1, 0 or 1"),
    (22, "ILLEGAL_GENERATION", _NOTHING, "the member speaks for an old generation of the group"),
    (23, "INCONSISTENT_GROUP_PROTOCOL", _NOTHING, "the member shares no assignment protocol with its group"),
    (24, "INVALID_GROUP_ID", _NOTHING, "the group id is empty or illegal"),
    (25, "UNKNOWN_MEMBER_ID", _NOTHING, "the coordinator does not know this member"),
    (26, "INVALID_SESSION_TIMEOUT", _NOTHING, "session.timeout.ms is outside the range the broker allows"),
    (27, "REBALANCE_IN_PROGRESS", _NOTHING, "the group is rebalancing; join again"),
    (28, "INVALID_COMMIT_OFFSET_SIZE", _NOTHING, "the offset commit is too large"),
    (29, "TOPIC_AUTHORIZATION_FAILED", _NOTHING, "not authorized for the topic"),
    (30, "GROUP_AUTHORIZATION_FAILED", _NOTHING, "not authorized for the group"),
    (31, "CLUSTER_AUTHORIZATION_FAILED", _FATAL, "not authorized for the cluster"),
    (32, "INVALID_TIMESTAMP", _NOTHING, "the record's timestamp is outside the range the topic accepts"),
    (33, "UNSUPPORTED_SASL_MECHANISM", _NOTHING, "the listener does not serve this way to log in"),
    (34, "ILLEGAL_SASL_STATE", _NOTHING, "a log-in comes where none is expected, or is missing"),
    (35, "UNSUPPORTED_VERSION", _FATAL, "the broker does not serve this version of the request"),
    (36, "TOPIC_ALREADY_EXISTS", _NOTHING, "a topic of this name exists"),
    (37, "INVALID_PARTITIONS", _NOTHING, "the number of partitions is not acceptable"),
    (38, "INVALID_REPLICATION_FACTOR", _NOTHING, "the replication factor is below 1 or above the number of "
                                                 "live brokers"),
    (39, "INVALID_REPLICA_ASSIGNMENT", _NOTHING, "the replica assignment is not possible"),
    (40, "INVALID_CONFIG", _NOTHING, "a config is unknown or its value is not allowed"),
    (41, "NOT_CONTROLLER", _RETRY, "the broker asked is not the controller"),
    (42, "INVALID_REQUEST", _NOTHING, "the request contradicts itself or the protocol"),
    (43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", _FATAL, "the topic's message format cannot do this"),
    (44, "POLICY_VIOLATION", _NOTHING, "a limit or policy of the cluster forbids it"),
    (45, "OUT_OF_ORDER_SEQUENCE_NUMBER", _NOTHING, "a sequence number is missing before this batch"),
    (46, "DUPLICATE_SEQUENCE_NUMBER", _NOTHING, "the batch was already written"),
    (47, "INVALID_PRODUCER_EPOCH", _FATAL, "the producer epoch is older than one the broker has seen"),
    (48, "INVALID_TXN_STATE", _NOTHING, "the transaction is in a state that does not allow this"),
    (49, "INVALID_PRODUCER_ID_MAPPING", _NOTHING, "the producer id does not belong to this transactional id"),
    (50, "INVALID_TRANSACTION_TIMEOUT", _NOTHING, "the transaction timeout is above the broker's maximum"),
    (51, "CONCURRENT_TRANSACTIONS", _RETRY, "another operation on the same transaction is still running"),
    (52, "TRANSACTION_COORDINATOR_FENCED", _NOTHING, "the transaction coordinator was replaced"),
    (53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", _FATAL, "not authorized for the transactional id"),
    (54, "SECURITY_DISABLED", _NOTHING, "the cluster has no authorizer, so there are no ACLs"),
    (55, "OPERATION_NOT_ATTEMPTED", _NOTHING, "not tried, because another part of the request failed"),
    (56, "KAFKA_STORAGE_ERROR", _RETRY | _REFRESH, "the broker's disk failed"),
    (57, "LOG_DIR_NOT_FOUND", _NOTHING, "the broker has no such data directory"),
    (58, "SASL_AUTHENTICATION_FAILED", _FATAL, "the broker refused user, password or token"),
    (59, "UNKNOWN_PRODUCER_ID", _NOTHING, "the broker has forgotten this producer"),
    (60, "REASSIGNMENT_IN_PROGRESS", _NOTHING, "the partition is being moved already"),
    (61, "DELEGATION_TOKEN_AUTH_DISABLED", _NOTHING, "the cluster has no delegation tokens"),
    (62, "DELEGATION_TOKEN_NOT_FOUND", _NOTHING, "the broker knows no such delegation token"),
    (63, "DELEGATION_TOKEN_OWNER_MISMATCH", _NOTHING, "the token belongs to another user"),
    (64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", _NOTHING, "tokens are not given on a connection like this "
                                                           "one"),
    (65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", _NOTHING, "not authorized for the delegation token"),
    (66, "DELEGATION_TOKEN_EXPIRED", _NOTHING, "the delegation token has expired"),
    (67, "INVALID_PRINCIPAL_TYPE", _NOTHING, "the principal is not of a known type"),
    (68, "NON_EMPTY_GROUP", _NOTHING, "the group still has members"),
    (69, "GROUP_ID_NOT_FOUND", _NOTHING, "the group does not exist"),
    (70, "FETCH_SESSION_ID_NOT_FOUND", _RETRY, "the broker holds no such fetch session"),
    (71, "INVALID_FETCH_SESSION_EPOCH", _RETRY, "the fetch session is at another epoch"),
    (72, "LISTENER_NOT_FOUND", _RETRY | _REFRESH, "the leader has no listener of the name that the client "
                                                  "uses"),
    (73, "TOPIC_DELETION_DISABLED", _NOTHING, "the cluster does not let topics be deleted"),
    (74, "FENCED_LEADER_EPOCH", _RETRY | _REFRESH, "the request names an old leader epoch"),
    (75, "UNKNOWN_LEADER_EPOCH", _RETRY | _REFRESH, "the request names a leader epoch the broker has not "
                                                    "seen yet"),
    (76, "UNSUPPORTED_COMPRESSION_TYPE", _NOTHING, "the topic or API version does not take this compression"),
    (77, "STALE_BROKER_EPOCH", _NOTHING, "the broker has registered again since"),
    (78, "OFFSET_NOT_AVAILABLE", _RETRY, "the new leader cannot tell its high watermark yet"),
    (79, "MEMBER_ID_REQUIRED", _NOTHING, "join again with the member id in this answer"),
    (80, "PREFERRED_LEADER_NOT_AVAILABLE", _RETRY | _REFRESH, "the first replica of the partition is down or "
                                                              "not in sync"),
    (81, "GROUP_MAX_SIZE_REACHED", _NOTHING, "the group is full"),
    (82, "FENCED_INSTANCE_ID", _FATAL, "another member holds this group.instance.id"),
    (83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", _RETRY, "no replica that could lead is alive"),
    (84, "ELECTION_NOT_NEEDED", _RETRY, "the partition has that leader already"),
    (85, "NO_REASSIGNMENT_IN_PROGRESS", _NOTHING, "the partition is not being moved"),
    (86, "GROUP_SUBSCRIBED_TO_TOPIC", _NOTHING, "the group still reads the topic"),
    (87, "INVALID_RECORD", _NOTHING, "the broker refused a record"),
    (88, "UNSTABLE_OFFSET_COMMIT", _RETRY, "offsets of an open transaction are pending"),
    (89, "THROTTLING_QUOTA_EXCEEDED", _RETRY, "a quota is used up"),
    (90, "PRODUCER_FENCED", _FATAL, "a newer producer holds this transactional id"),
    (91, "RESOURCE_NOT_FOUND", _NOTHING, "the named resource does not exist"),
    (92, "DUPLICATE_RESOURCE", _NOTHING, "the same resource is named twice"),
    (93, "UNACCEPTABLE_CREDENTIAL", _NOTHING, "the SCRAM credential has too few or too many iterations, or "
                                              "an empty part"),
    (94, "INCONSISTENT_VOTER_SET", _NOTHING, "the controllers do not agree who votes"),
    (95, "INVALID_UPDATE_VERSION", _NOTHING, "the feature cannot have this version, or somebody else changed "
                                             "it first"),
    (96, "FEATURE_UPDATE_FAILED", _NOTHING, "the controller could not update the feature"),
    (97, "PRINCIPAL_DESERIALIZATION_FAILURE", _NOTHING, "the controller cannot read the user that a broker "
                                                        "passed on"),
    (98, "SNAPSHOT_NOT_FOUND", _NOTHING, "the controller has no such snapshot any more"),
    (99, "POSITION_OUT_OF_RANGE", _NOTHING, "the snapshot is shorter than the position asked for"),
    (100, "UNKNOWN_TOPIC_ID", _RETRY | _REFRESH, "the broker knows no topic with this id"),
    (101, "DUPLICATE_BROKER_REGISTRATION", _NOTHING, "another broker that is alive has this node id"),
    (102, "BROKER_ID_NOT_REGISTERED", _NOTHING, "no broker of this id has registered"),
    (103, "INCONSISTENT_TOPIC_ID", _RETRY | _REFRESH, "the topic id and the log's differ"),
    (104, "INCONSISTENT_CLUSTER_ID", _NOTHING, "the broker belongs to another cluster"),
    (105, "TRANSACTIONAL_ID_NOT_FOUND", _NOTHING, "the coordinator knows no such transactional id"),
    (106, "FETCH_SESSION_TOPIC_ID_ERROR", _RETRY, "a fetch session names topics by id and by name"),
    (107, "INELIGIBLE_REPLICA", _NOTHING, "the replica may not be counted as in sync now"),
    (108, "NEW_LEADER_ELECTED", _NOTHING, "the partition got a leader by this change"),
    (109, "OFFSET_MOVED_TO_TIERED_STORAGE", _NOTHING, "the offset is in remote storage alone"),
    (110, "FENCED_MEMBER_EPOCH", _NOTHING, "the group has gone on without this member"),
    (111, "UNRELEASED_INSTANCE_ID", _NOTHING, "another member in the group has this group.instance.id"),
    (112, "UNSUPPORTED_ASSIGNOR", _NOTHING, "the brokers do not have the assignor asked for"),
    (113, "STALE_MEMBER_EPOCH", _NOTHING, "the member speaks for an older epoch of its own"),
    (114, "MISMATCHED_ENDPOINT_TYPE", _NOTHING, "the question is for controllers and was put to a broker, or "
                                                "the other way"),
    (115, "UNSUPPORTED_ENDPOINT_TYPE", _NOTHING, "there is no such type of endpoint"),
    (116, "UNKNOWN_CONTROLLER_ID", _NOTHING, "no controller of this id is in the quorum"),
    (117, "UNKNOWN_SUBSCRIPTION_ID", _NOTHING, "the cluster asks for other metrics by now"),
    (118, "TELEMETRY_TOO_LARGE", _NOTHING, "a client pushed more metrics than the broker takes at once"),
    (119, "INVALID_REGISTRATION", _NOTHING, "the broker's registration contradicts itself or the cluster"),
    (120, "TRANSACTION_ABORTABLE", _NOTHING, "the transaction can only be aborted"),
    (121, "INVALID_RECORD_STATE", _NOTHING, "the share group's member does not hold the record any more, or "
                                            "may not do this to it"),
    (122, "SHARE_SESSION_NOT_FOUND", _RETRY, "the broker holds no such share session"),
    (123, "INVALID_SHARE_SESSION_EPOCH", _RETRY, "the share session is at another epoch"),
    (124, "FENCED_STATE_EPOCH", _NOTHING, "a newer owner has written the state of the share partition"),
    (125, "INVALID_VOTER_KEY", _NOTHING, "the voter's id does not go with its directory id"),
    (126, "DUPLICATE_VOTER", _NOTHING, "the voter is in the quorum already"),
    (127, "VOTER_NOT_FOUND", _NOTHING, "the quorum has no such voter"),
    (128, "INVALID_REGULAR_EXPRESSION", _NOTHING, "the brokers do not understand the expression"),
    (129, "REBOOTSTRAP_REQUIRED", _NOTHING, "the client is to look the cluster up again at its bootstrap "
                                            "servers"),
    (130, "STREAMS_INVALID_TOPOLOGY", _NOTHING, "the topology of a Kafka Streams group is not possible"),
    (131, "STREAMS_INVALID_TOPOLOGY_EPOCH", _NOTHING, "the member of a Kafka Streams group names an unknown "
                                                      "topology epoch"),
    (132, "STREAMS_TOPOLOGY_FENCED", _NOTHING, "the member of a Kafka Streams group has an old topology"),
    (133, "SHARE_SESSION_LIMIT_REACHED", _RETRY, "the broker holds as many share sessions as it may"),
)
# fmt: on

TABLE: dict[int, ErrorPolicy] = {row[0]: ErrorPolicy(*row) for row in _ROWS}
"""Error code → its row."""


class ErrorCode:
    """The codes by name, for reading code: `ErrorCode.NOT_LEADER_OR_FOLLOWER`."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133


def policy(code: int) -> ErrorPolicy:
    """The row for `code`; for a code that the table does not have, a row that is not retriable."""
    return TABLE.get(code) or ErrorPolicy(
        code, f"UNKNOWN_ERROR_CODE_{code}", Policy.NOTHING, "an error code newer than this client"
    )
