"""Count the records of a topic by key on Spark, and write the counts to another topic."""

import sys

from fairlead_kafka import Producer
from fairlead_kafka.spark import spark_session

servers = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"

with Producer({"bootstrap.servers": servers}) as producer:
    for number in range(30):
        producer.send("clicks", b"a click", key=b"page %d" % (number % 3))

spark = spark_session("clicks", master="local[2]")
kafka = {"kafka.bootstrap.servers": servers}
clicks = spark.read.format("fairlead").options(**kafka, subscribe="clicks").load()
counts = clicks.groupBy("key").count().selectExpr("key", "cast(count AS string) AS value")
counts.write.format("fairlead").options(**kafka, topic="click-counts").mode("append").save()
for row in counts.collect():
    print(bytes(row.key).decode(), row.value)
