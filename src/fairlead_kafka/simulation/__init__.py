"""Simulation: worlds of machines under a virtual clock, with faults by seed and a model that checks
them.

Theory of operation ------------------- `runtime.VirtualHost` runs real machines in virtual time,
over a network and a disk whose chance comes from a seed. This package adds:

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
generator of its own. The same seed tells the same story, event by event; a violation prints the
seed, the plan and the command that replays it.

Model brokers are not `broker`: they are a second, smaller reading of Kafka's rules for producers,
some 40 microseconds per request, made for the lab's experiments in virtual time and for thousands
of seeds. They may do what real ones rarely do: take back what nobody was told of, name a leader
that is not there, forget producers, answer late and out of date. World `producer` uses them.

World `cluster` has real brokers (`real_cluster`) that replicate, one to four of them, and one real
controller, called directly or over the network. They are killed, stopped, cut from each other and
from the controller; their disks tear, forget and fill up; the power goes between any two operations
of a disk (`cluster_faults`). While it lives, `Watcher` reads what consumers would be given,
compares replicas below their high watermarks, and sees that these never go back; `Committer`
commits offsets. In the end the cluster has to become whole by itself, all replicas equal to the
last byte (`replica_logs`), be killed whole, and be whole once more.

Two worlds `cluster` of five have groups (`groups`, drawn by `group_story`): real consumer machines
of both protocols (`member`), some of which process in transactions (`processor`). Members join,
die, hang, are cut off, are rolled from one protocol to the other, and read other topics, while
brokers do what they do. Members of both kinds of groups live alike: `process` runs an application
as a generator, `group_member` begins the next process after one. The answers to each member are
written down (`group_ledger`), and checked once the world is over (`group_checks`). After a takeover
the former owner commits once more (`former_members`). In the end each partition has one owner that
has read all of it, within `groups.CONVERGE_MS`.

Three worlds `cluster` of ten have share groups (`shares`, drawn by `share_story`): real share
consumers (`share_member`) that accept, release, reject and renew, or leave all that to the next
poll, work for longer than their locks last, hang, die and close, while leaders and share
coordinators move, and records are compacted and deleted below them (`share_jobs`). What leaders
lock is noted at their hook, by their own clock, and what members say and are answered beside it
(`share_ledger`); both are compared with the log in the end (`share_checks`). Requests with an epoch
of a session that is past come all the time (`share_probes`). In the end some members keep what they
have without a word: a patient member has to be given it when the locks are over, all the rest too,
within `shares.CONVERGE_MS`, and nothing of it again after one more start of all brokers.

World `readers` has real brokers too, and asks for what they hold in every way that clients have. A
topic is compacted so that markers and tombstones go within the world, two partitions are deleted
from at offsets within batches; records have timestamps of clocks that differ by minutes
(`keyed_sender`, `trimmer`). Writes fail midway and heal, power cuts keep later pages and lose
earlier ones, batches of old files rot (`rot`); connections come that say nothing or do not read
(`bad_clients`), and names of every length (`long_ids`). Real consumers of both isolation levels
read and ask for offsets all along and in the end (`reader`); what they were told is compared with
what the applications were told (`facts`, `reading_checks`), never with a log. In three of ten of
these worlds consumers read a topic that is deleted and made again, over and over (`remade_topic`).

World `transactions` has real brokers, and transactional producers that follow the rules of Kafka's
Java client (`java_producer`, over `pipeline`): several batches on their way to a partition that
does not know them, ends right behind the last one, transactions that outlive their time. Our own
producer does none of that. No answer may fail such an application, and its transactions are whole.

Redundant state of machines is compared by their `check()`: after every step of some worlds, and at
the end of all (`checking`).

The checks ask what can be promised, and no more. Without idempotence a record may be there twice;
without flushing, a power cut takes what was acknowledged; brokers that forget a producer while its
batches are under way cannot know duplicates. What is promised is checked for every record, and what
must not jam: once everything is healed and has calmed down, whatever is sent is delivered.

A canary is a bug planted at a named hook (`base.hooks`) for the time of a run. If its world does
not notice, the world is blind where the bug sits.
"""

from fairlead_kafka.simulation.application import Application, SubmittedRecords
from fairlead_kafka.simulation.model_cluster import Refusal
from fairlead_kafka.simulation.produce_cluster import BrokerHandle, ProduceCluster

__all__ = ["Application", "BrokerHandle", "SubmittedRecords", "ProduceCluster", "Refusal"]
