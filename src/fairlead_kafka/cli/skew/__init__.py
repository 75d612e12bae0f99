"""`fairlead skew`: how a topic's records are spread over partitions and batches, the hottest keys,
and the spread with other settings.

Theory of operation. `window` chooses the records: the whole topic, or the newest share of each
partition, so that all cover about the same range of time. `tally` reads them once as headers of
record batches (`Consumer.read_batches`) and once as records, and keeps sums, histograms and a
sketch of the hottest keys (`hot_keys`): its memory does not grow with the topic. The newest records
are kept whole, within a bound, and submitted again (`replay`), once for each policy, `batch.size`
and `linger.ms`, to Fairlead's real producer in virtual time. `report` puts all of it into one
document for `--json`; `screen` and `picture` show that document. `filling` makes a topic of a file
of lines, in an embedded cluster, for users who have a log and no topic yet.

`spread` measures evenness: the largest partition divided by the mean, which KIP-794 aims to bring
down to 1.
"""
