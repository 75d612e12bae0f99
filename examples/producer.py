"""Send records, and see where each was written."""

import sys

from fairlead_kafka import FairleadError, Producer

servers = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"

with Producer({"bootstrap.servers": servers, "linger.ms": 5}) as producer:
    futures = [producer.send("greetings", b"hello %d" % number) for number in range(10)]
    for future in futures:
        try:
            written = future.result(timeout_s=10)
            print(f"{written.topic} partition {written.partition} offset {written.offset}")
        except FairleadError as error:
            print(f"not written: {error}")
