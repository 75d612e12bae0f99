"""Copy a topic on Spark: each row is in the copy once, whatever fails on the way.

python spark_exactly_once.py SERVERS CHECKPOINT_FOLDER
"""

import sys

from fairlead_kafka import Producer
from fairlead_kafka.spark import spark_session

servers = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"
checkpoint = sys.argv[2] if len(sys.argv) > 2 else "checkpoint"

with Producer({"bootstrap.servers": servers}) as producer:
    for number in range(20):
        producer.send("bookings", b"booking %d" % number)

spark = spark_session("bookings", master="local[2]")
kafka = {"kafka.bootstrap.servers": servers}
source = {**kafka, "subscribe": "bookings", "startingOffsets": "earliest"}
query = (
    spark.readStream.format("fairlead")
    .options(**source)
    .load()
    .selectExpr("key", "value")
    .writeStream.format("fairlead")
    .options(**kafka, topic="bookings-copy", deliveryGuarantee="exactly-once")
    .option("checkpointLocation", checkpoint)
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()

committed = {**kafka, "subscribe": "bookings-copy", "kafka.isolation.level": "read_committed"}
print("rows:", spark.read.format("fairlead").options(**committed).load().count())
