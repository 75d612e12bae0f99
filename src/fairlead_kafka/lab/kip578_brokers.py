"""Three brokers of Fairlead's as a program of their own, for KIP-578's experiments: it loads what
brokers need and nothing else.

    python -m fairlead_kafka.lab.kip578_brokers FOLDER thread|processes

It prints the brokers' addresses, and reads commands as lines of JSON, ["kill" or "start", broker],
until there are no more.
"""

from __future__ import annotations

import gc
import json
import sys

BROKERS = 3


def main(folder: str, hosting: str) -> None:
    """Host a cluster over `folder`, print its address, and carry out the commands on standard
    input."""
    from fairlead_kafka.testing import Cluster

    gc.collect()
    gc.freeze()  # as `fairlead up` does
    with Cluster(BROKERS, data_dir=folder, processes=hosting == "processes") as cluster:
        print(json.dumps(cluster.bootstrap_servers))
        for line in sys.stdin:
            what, node_id = json.loads(line)
            broker = cluster.broker(node_id)
            (broker.kill if what == "kill" else broker.start)()
            print(json.dumps(what))


if __name__ == "__main__":
    main(*sys.argv[1:])
