"""Client quotas: how much of a broker one client may use, and what becomes of it if it uses more.

Theory of operation. The cluster's metadata says what is granted to whom
(`ClusterImage.client_quotas`, set by AlterClientQuotas, KIP-546). `table` finds what applies to a
user and a client id, by Kafka's order of precedence. `rates` measures, and says for how long a
client that has used too much must be still; pure arithmetic. `quotas` keeps one rate for each
client that is measured. A Produce is charged for its bytes when it is begun, for those behind it on
the connection do not wait for its answer; all else when it is answered.

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
handler works and its answer is encoded. What a step does at its end for all together (writing,
replication) is nobody's.

Exempt is what brokers ask each other, known by the API and not by who says that it is a broker:
private requests, WriteTxnMarkers, the verifying versions of AddPartitionsToTxn; and whatever comes
before a log-in is complete, for nobody is known by then.

Without quotas a request costs the look at one attribute. Nothing is kept of a client that was
silent for as long as a rate looks back, for it would be measured as a new one anyway; and of no
more than QUOTA_RATES_MAX at once.
"""
