"""Client quotas: limits on a client's use of a broker, and throttling of clients that exceed them.

Theory of operation. The cluster's metadata has the quotas (`ClusterImage.client_quotas`, set by
AlterClientQuotas, KIP-546). `table` finds the quota that applies to a user and a client id, by
Kafka's order of precedence. `rates` measures, and computes for how long a client that has used too
much is throttled; pure arithmetic. `quotas` keeps one rate for each client that is measured. A
Produce is charged for its bytes when it is begun, because later ones on the connection do not wait
for its answer; other requests when they are answered.

    request, answer ─▶ Quotas ─▶ rate ─▶ over? ─┬─▶ throttle_time_ms in the answer, sent at once
                                                └─▶ Muting: no more is read for that time (KIP-219)

| quota | by | measured is |
|---|---|---|
| producer_byte_rate | user, client id | bytes of Produce requests |
| consumer_byte_rate | user, client id | bytes of record batches in answers to Fetch |
| request_percentage | user, client id | time in handlers, in percent of the broker's one thread |
| controller_mutation_rate | user, client id | partitions created and deleted in the cluster |
| connection_creation_rate | ip | connections accepted |

A client that is over consumer_byte_rate gets no record batches for a while; connections above
connection_creation_rate are closed after a while. All are measured by `Rate`, request_percentage
and connection_creation_rate over one window at most; only controller_mutation_rate is measured by a
`TokenBucket` (`controller.mutations`).

All clients for whom one entity's quota applies through a default have a rate of their own each;
those who share a user's quota, or a client id's, share its rate. Each broker measures for itself,
as in Kafka, but for mutations, which the controller decides on.

Time in handlers. A machine reads no clock, so its host gives it one (`Broker.handler_clock`, the
CPU time of the thread); without one nothing takes any time. It runs while a request is decoded, its
handler works and its answer is encoded. Work at the end of a step for all requests together
(writing, replication) is charged to no client.

Requests between brokers are exempt, by their API and not by the sender's claim to be a broker:
private requests, WriteTxnMarkers, the verifying versions of AddPartitionsToTxn. So are requests
before a log-in is complete, because the user is not known by then.

Without quotas a request only tests one attribute. The rate of a client that was idle for the whole
window is dropped, because a new one would be equal; and at most QUOTA_RATES_MAX are kept.
"""
