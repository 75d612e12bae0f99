"""Simulation: worlds of machines under a virtual clock, with faults drawn from a seed and a model
that checks them.

`runtime.VirtualHost` runs real machines in virtual time, over a network and a disk whose chance
comes from a seed. This package adds:

    ProduceCluster    model brokers over one common log (`model_log`), so that leaders may move:
                      slow, dead, frozen or wrong by script
    Application       a real `ProducerMachine`; stand-ins for the API's intake, memory and results
    Sender            an application that sends, and the results that it got (`workload`); in
                      transactions: `transactional`
    Drawing, Faults   a fault plan, drawn from the seed (`fault_plan`), and its injection (`faults`)
    World             senders against a cluster under faults; then calm, a last send, and checks
                      (`world`, `delivery_checks`)
    simulate          seeds of a world on several processes, and its canaries (`run`, `canaries`)

A seed draws everything: brokers, topics, configurations, submissions, faults. Each part has a
generator of its own. The same seed gives the same run, event by event; a violation prints the seed,
the plan and the command that replays it.

Model brokers are not `broker`: they are a second, smaller implementation of Kafka's rules for
producers, some 40 microseconds per request, made for the lab's experiments in virtual time and for
thousands of seeds. They may do what real ones rarely do: lose records that were not acknowledged,
name a leader that does not exist, forget producers, answer late and with stale metadata. World
`producer` uses them.

World `cluster` has real brokers (`real_cluster`) that replicate, one to four of them, and one real
controller, called directly or over the network. They are killed, stopped, cut from each other and
from the controller; their disks tear, forget and fill up, and so does the metadata log's; configs
change and change back; the power goes between any two operations of a disk (`cluster_faults`).
While it runs, `Watcher` reads as consumers do, compares replicas below their high watermarks, and
checks that these never go back; `Committer` commits offsets. In the end the cluster has to become
whole by itself, the metadata log has to tell of it as it is, and all replicas have to be equal to
the last byte (`replica_logs`), be killed as a whole, and recover once more.

Two worlds `cluster` of five have groups (`groups`, drawn by `group_story`): real consumer machines
of both protocols (`member`), some of which process in transactions (`processor`). Members join,
die, hang, are cut off, are rolled from one protocol to the other, and read other topics, while
brokers fail. Members of both kinds of groups have common code: `process` runs an application as a
generator, `group_member` begins the next process after one. The answers to each member are written
down (`group_ledger`), and checked once the world is over (`group_checks`). After a takeover the
former owner commits once more (`former_members`). In the end each partition has one owner that has
read all of it, within `groups.CONVERGE_MS`.

Three worlds `cluster` of ten have share groups (`shares`, drawn by `share_story`): real share
consumers (`share_member`) that accept, release, reject and renew, or leave all that to the next
poll, work for longer than their locks last, hang, die and close, while leaders and share
coordinators move, and records are compacted and deleted below them (`share_jobs`). Leaders' locks
are recorded by a hook, with their own clock, and so are members' acknowledgements and the answers
(`share_ledger`); both are compared with the log in the end (`share_checks`). Requests with a past
epoch of a session come all the time (`share_probes`). In the end some members keep their records
without acknowledging them: a patient member has to get these when the locks expire, and all other
records, within `shares.CONVERGE_MS`, and none of them again after one more start of all brokers.

World `readers` has real brokers too, and reads their records in every way that clients have. A
topic is compacted so that markers and tombstones go within the world, two partitions are deleted
from at offsets within batches; records have timestamps of clocks that differ by minutes
(`keyed_sender`, `trimmer`). Writes fail midway and heal, power cuts keep later pages and lose
earlier ones, batches of old files rot (`rot`); connections come that say nothing or do not read
(`bad_clients`), and names of every length (`long_ids`). Real consumers of both isolation levels
read and ask for offsets all along and in the end (`reader`); their answers are compared with the
results that the applications got (`facts`, `reading_checks`), never with a log. In three of ten of
these worlds consumers read a topic that is deleted and made again, over and over (`remade_topic`).

World `transactions` has real brokers, and transactional producers that follow the rules of Kafka's
Java client (`java_producer`, over `pipeline`): several batches under way to a partition that does
not know the producer, ends right behind the last batch, transactions that exceed their time-out.
Fairlead's own producer does none of that. No answer may fail such an application, and its
transactions are whole.

Redundant state of machines is compared by their `check()`: after every step of some worlds, and at
the end of all (`checking`).

The checks are about guarantees, and no more. Without idempotence a record may be there twice;
without flushing, a power cut loses acknowledged records; brokers that forget a producer while its
batches are under way cannot know duplicates. Guarantees are checked for every record, and so is
progress: once all faults are healed, records that are sent are delivered.

A canary is a bug planted at a named hook (`base.hooks`) for the time of a run. If its world reports
no violation, its checks do not cover that place.
"""

from fairlead_kafka.simulation.application import Application, SubmittedRecords
from fairlead_kafka.simulation.model_cluster import Refusal
from fairlead_kafka.simulation.produce_cluster import BrokerHandle, ProduceCluster

__all__ = ["Application", "BrokerHandle", "SubmittedRecords", "ProduceCluster", "Refusal"]
