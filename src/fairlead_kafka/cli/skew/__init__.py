"""`fairlead skew`: how a topic's records are spread over partitions and batches, which keys do it,
and what other settings would have done.

Theory of operation. `window` chooses what is looked at: the whole topic, or of each partition its
newest share, so that all cover about the same range of time. `tally` reads that once as headers of
record batches (`Consumer.read_batches`) and once as records, and keeps sums, histograms and a
sketch of the hottest keys (`hot_keys`): its memory does not grow with the topic. The newest records
are kept whole, within a bound, and submitted again (`replay`), once for each policy, `batch.size`
and `linger.ms`, to our real producer in virtual time. `report` puts all of it into one document for
`--json`; `screen` and `picture` show that document and know nothing else. `filling` makes a topic
of a file of lines, in an embedded cluster, for users who have a log and no topic yet.

`spread` says what even means: the largest partition by the mean, which is what KIP-794 sets out to
bring down to 1.
"""
