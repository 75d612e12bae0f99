"""Tests of a program whose cluster fails: run them with pytest."""

from fairlead_kafka import Consumer, Producer, TopicPartition
from fairlead_kafka.testing import ApiKey, ErrorCode


def save_order(servers, topic, order):
    """The program under test."""
    with Producer({"bootstrap.servers": servers}) as producer:
        return producer.send(topic, order).result(timeout_s=30)


def test_an_order_is_saved_once_though_the_answer_is_lost(kafka_cluster, kafka_topic):
    lost = kafka_cluster.on(ApiKey.PRODUCE, topic=kafka_topic).disconnect(times=1)
    save_order(kafka_cluster.bootstrap_servers, kafka_topic, b"an order")
    assert lost.hits == 1
    settings = {"bootstrap.servers": kafka_cluster.bootstrap_servers, "auto.offset.reset": "earliest"}
    with Consumer(settings) as consumer:
        consumer.assign([TopicPartition(kafka_topic, 0)])
        assert [record.value for record in consumer.poll(timeout_s=30)] == [b"an order"]


def test_an_order_is_saved_once_replicas_are_back(kafka_cluster, kafka_topic):
    refused = kafka_cluster.on(ApiKey.PRODUCE, topic=kafka_topic).answer(
        ErrorCode.NOT_ENOUGH_REPLICAS, times=2
    )
    assert save_order(kafka_cluster.bootstrap_servers, kafka_topic, b"an order").offset == 0
    assert refused.hits == 2
