"""The transcript: the same requests to Apache Kafka and to Fairlead's cluster, with answers
compared field by field.

Theory of operation. The transcript is data: a list of `Step`s (`steps`), each an API, some versions
and the fields of a request, in modules of their own (`*_steps`). `talk` takes them one after
another over plain connections, so that no client's logic is in between, and keeps what later
requests need (ids, members, producers) in `Seen`. `compare` replaces values that each system
chooses (ids, ports, times) and walks two answers side by side. A difference must be in
`differences.toml` with its reason, or it counts as unexplained; an entry that explains nothing is
reported too, so that the file stays true.
"""

from fairlead_kafka.lab.transcript.run import Transcript, run_replicated, run_secured, run_transcript
from fairlead_kafka.lab.transcript.talk import Talk

__all__ = ["Talk", "Transcript", "run_replicated", "run_secured", "run_transcript"]
