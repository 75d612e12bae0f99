"""Message, the header rules, defaults, names, zero copy, versions: by hand-made bytes where that is
possible."""

from __future__ import annotations

import copy
import pickle
from uuid import UUID

import pytest

from fairlead_kafka.base.errors import DecodeError, UnsupportedVersion, UsageError
from fairlead_kafka.wire import (
    CLIENT_VERSIONS,
    ApiKey,
    FrameReader,
    Message,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    peek_request,
    response_correlation_id,
    versions_of,
)


def request_frame(api_key: int, version: int, message: Message) -> memoryview:
    return memoryview(b"".join(encode_request(api_key, version, 9, "me", message)))[4:]


def response_frame(api_key: int, version: int, message: Message) -> memoryview:
    return memoryview(b"".join(encode_response(api_key, version, 9, message)))[4:]


# Headers


def test_a_classic_request_is_size_header_body() -> None:
    (frame,) = encode_request(
        ApiKey.HEARTBEAT, 0, 7, "me", Message(group_id="g", generation_id=3, member_id="m")
    )
    assert (
        frame
        == b"\0\0\0\x16"
        + b"\0\x0c\0\0"
        + b"\0\0\0\x07"
        + b"\0\x02me"
        + b"\0\x01g"
        + b"\0\0\0\x03"
        + b"\0\x01m"
    )


def test_a_flexible_request_has_header_two_with_a_classic_client_id() -> None:
    message = Message(client_software_name="fairlead", client_software_version="1")
    (frame,) = encode_request(ApiKey.API_VERSIONS, 3, 7, "me", message)
    assert (
        frame[4:]
        == b"\0\x12\0\x03" + b"\0\0\0\x07" + b"\0\x02me" + b"\0" + b"\x09fairlead" + b"\x021" + b"\0"
    )


def test_an_absent_client_id_is_null() -> None:
    (frame,) = encode_request(ApiKey.API_VERSIONS, 0, 7, None, Message())
    assert frame[4:] == b"\0\x12\0\0" + b"\0\0\0\x07" + b"\xff\xff"
    assert decode_request(memoryview(frame)[4:]).client_id is None


def test_a_flexible_response_has_header_one() -> None:
    (frame,) = encode_response(ApiKey.HEARTBEAT, 4, 5, Message(error_code=27))
    assert frame[4:] == b"\0\0\0\x05" + b"\0" + b"\0\0\0\0" + b"\0\x1b" + b"\0"


def test_an_api_versions_response_has_header_zero_even_when_flexible() -> None:
    (frame,) = encode_response(
        ApiKey.API_VERSIONS, 3, 5, Message(api_keys=[Message(api_key=18, min_version=0, max_version=4)])
    )
    assert frame[4:] == b"\0\0\0\x05" + b"\0\0" + b"\x02" + b"\0\x12\0\0\0\x04\0" + b"\0\0\0\0" + b"\0"
    assert decode_response(ApiKey.API_VERSIONS, 3, memoryview(frame)[4:]).api_keys[0].max_version == 4


def test_unknown_tags_in_either_header_are_skipped() -> None:
    request = (
        b"\0\x0c\0\x04"
        + b"\0\0\0\x07"
        + b"\0\x02me"
        + b"\x01\x63\x03abc"
        + b"\x02g"
        + b"\0\0\0\x03"
        + b"\x02m"
        + b"\0"
        + b"\0"
    )
    assert decode_request(memoryview(request)).message == Message(
        group_id="g", generation_id=3, member_id="m", group_instance_id=None
    )
    response = b"\0\0\0\x05" + b"\x02\x00\x01x\x63\x00" + b"\0\0\0\0" + b"\0\x1b" + b"\0"
    assert decode_response(ApiKey.HEARTBEAT, 4, memoryview(response)).error_code == 27


def test_an_unsupported_api_versions_request_can_be_peeked_and_answered() -> None:
    frame = memoryview(b"\0\x12\0\x63" + b"\0\0\0\x07" + b"\0\x02me" + b"what a later version may hold")
    header = peek_request(frame)
    assert (header.api_key, header.version, header.correlation_id, header.client_id) == (
        ApiKey.API_VERSIONS,
        99,
        7,
        "me",
    )
    with pytest.raises(
        UnsupportedVersion, match="version 99 of API key 18 is not known; Fairlead knows versions 0 to 4"
    ):
        decode_request(frame)
    answer = Message(error_code=35, api_keys=[Message(api_key=18, min_version=0, max_version=4)])
    (response,) = encode_response(ApiKey.API_VERSIONS, 0, header.correlation_id, answer)
    assert response[4:] == b"\0\0\0\x07" + b"\0\x23" + b"\0\0\0\x01" + b"\0\x12\0\0\0\x04"


def test_an_unknown_api_key_can_be_peeked() -> None:
    header = peek_request(memoryview(b"\x27\x0f\0\x01" + b"\0\0\0\x07" + b"\xff\xff"))
    assert header.api_key == 9999
    with pytest.raises(UnsupportedVersion, match="API key 9999"):
        versions_of(header.api_key)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\x12\0",
        b"\0\x12\0\0\0\0\0\x07\0\x05me",
        b"\0\x12\0\0\0\0\0\x07\xff\xfeme",
        b"\0\x12\0\0\0\0\0\x07\0\x02\xff\xff",
    ],
)
def test_a_broken_request_header_is_a_decode_error(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        peek_request(memoryview(frame))


def test_the_correlation_id_of_a_response_is_read_without_decoding_it() -> None:
    assert response_correlation_id(memoryview(b"\0\0\0\x05rest")) == 5
    with pytest.raises(DecodeError):
        response_correlation_id(memoryview(b"\0\0\0"))


# Record bytes


def test_produced_record_buffers_are_handed_on_as_they_are() -> None:
    first, second, third = b"first batch", memoryview(bytearray(b"second")), bytearray(b"third")
    partitions = [
        Message(index=0, records=first),
        Message(index=1, records=[second, third]),
        Message(index=2, records=None),
    ]
    message = Message(acks=-1, timeout_ms=5, topic_data=[Message(name="t", partition_data=partitions)])
    buffers = encode_request(ApiKey.PRODUCE, 9, 1, "c", message)
    assert [any(buffer is records for buffer in buffers) for records in (first, second, third)] == [
        True,
        True,
        True,
    ]
    data = memoryview(b"".join(buffers))
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    decoded = decode_request(data[4:]).message.topic_data[0].partition_data
    assert [partition.records for partition in decoded] == [first, b"secondthird", None]
    assert decoded[0].records.obj is data.obj


def test_fetched_record_buffers_are_handed_on_as_they_are() -> None:
    batches = [b"one", memoryview(b"two")]
    partition = Message(partition_index=3, high_watermark=8, records=batches)
    buffers = encode_response(
        ApiKey.FETCH, 12, 1, Message(responses=[Message(topic="t", partitions=[partition])])
    )
    assert any(buffer is batches[0] for buffer in buffers)
    assert any(buffer is batches[1] for buffer in buffers)
    data = memoryview(b"".join(buffers))
    decoded = decode_response(ApiKey.FETCH, 12, data[4:]).responses[0].partitions[0]
    assert decoded.records == b"onetwo"
    assert decoded.records.obj is data.obj


def test_empty_record_buffers_leave_no_empty_pieces() -> None:
    partitions = [
        Message(index=0, records=b""),
        Message(index=1, records=[b"", b"x"]),
        Message(index=2, records=[]),
    ]
    buffers = encode_request(
        ApiKey.PRODUCE, 9, 1, "c", Message(topic_data=[Message(name="t", partition_data=partitions)])
    )
    assert all(len(buffer) for buffer in buffers)
    decoded = decode_request(memoryview(b"".join(buffers))[4:]).message
    assert [partition.records for partition in decoded.topic_data[0].partition_data] == [b"", b"x", b""]


def test_a_buffer_of_wider_items_counts_in_bytes() -> None:
    wide = memoryview(bytes(16)).cast("q")
    buffers = encode_request(
        ApiKey.PRODUCE,
        9,
        1,
        "c",
        Message(topic_data=[Message(name="t", partition_data=[Message(records=wide)])]),
    )
    assert (
        len(decode_request(memoryview(b"".join(buffers))[4:]).message.topic_data[0].partition_data[0].records)
        == 16
    )


# Tags


def test_unknown_tags_inside_a_fetched_partition_are_skipped_and_known_ones_read() -> None:
    tags = (
        b"\x03"
        + b"\x00\x0d"
        + b"\0\0\0\x04"
        + b"\0\0\0\0\0\0\0\x63"
        + b"\0"
        + b"\x01\x09"
        + b"\0\0\0\x02\0\0\0\x05\0"
        + b"\x63\x03abc"
    )
    partition = (
        b"\0\0\0\x01"
        + b"\0\x06"
        + bytes(8)
        + bytes(8)
        + bytes(8)
        + b"\x00"
        + b"\xff\xff\xff\xff"
        + b"\x03xy"
        + tags
    )
    frame = (
        b"\0\0\0\x01\0"
        + bytes(4)
        + bytes(2)
        + bytes(4)
        + b"\x02"
        + b"\x02t"
        + b"\x02"
        + partition
        + b"\0"
        + b"\0"
    )
    (topic,) = decode_response(ApiKey.FETCH, 12, memoryview(frame)).responses
    (fetched,) = topic.partitions
    assert (fetched.diverging_epoch.epoch, fetched.diverging_epoch.end_offset) == (4, 99)
    assert (fetched.current_leader.leader_id, fetched.current_leader.leader_epoch) == (2, 5)
    assert (fetched.snapshot_id.end_offset, fetched.snapshot_id.epoch) == (-1, -1)
    assert fetched.records == b"xy"
    assert fetched.aborted_transactions is None


def test_a_tagged_structure_that_does_not_fill_its_tag_is_refused() -> None:
    produced = response_frame(
        ApiKey.PRODUCE, 10, Message(node_endpoints=[Message(node_id=1, host="h", port=2)])
    )
    where = bytes(produced).rindex(b"\x01\x00\x0d") + 2
    with pytest.raises(DecodeError, match="node_endpoints does not fill its tagged field"):
        decode_response(
            ApiKey.PRODUCE,
            10,
            memoryview(produced[:where].tobytes() + b"\x0c" + produced[where + 1 :].tobytes()),
        )


def test_tagged_fields_at_their_defaults_are_not_written() -> None:
    plain = response_frame(ApiKey.FETCH, 16, Message(responses=[Message(partitions=[Message()])]))
    explicit = Message(
        responses=[
            Message(
                partitions=[
                    Message(diverging_epoch=Message(epoch=-1), current_leader=Message(), snapshot_id=None)
                ]
            )
        ],
        node_endpoints=[],
    )
    assert response_frame(ApiKey.FETCH, 16, explicit) == plain


def test_produce_ten_tells_the_new_leader() -> None:
    partition = Message(index=1, error_code=6, current_leader=Message(leader_id=3, leader_epoch=8))
    response = Message(
        responses=[Message(name="t", partition_responses=[partition])],
        node_endpoints=[Message(node_id=3, host="h", port=9092)],
    )
    decoded = decode_response(ApiKey.PRODUCE, 10, response_frame(ApiKey.PRODUCE, 10, response))
    assert decoded.responses[0].partition_responses[0].current_leader.leader_id == 3
    assert decoded.node_endpoints[0] == Message(node_id=3, host="h", port=9092, rack=None)


# Names, defaults, values


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (
            Message(topic_dada=[]),
            "no version of ProduceRequest has a field 'topic_dada'; did you mean 'topic_data'",
        ),
        (
            Message(topic_data=[Message(partition_data=[Message(), Message(offset=1)])]),
            "PartitionProduceData has a field 'offset'",
        ),
        (Message(timeout=1), "did you mean 'timeout_ms'"),
    ],
)
def test_a_name_that_no_version_has_is_refused(message: Message, complaint: str) -> None:
    for _ in range(2):
        with pytest.raises(UsageError, match=complaint):
            encode_request(ApiKey.PRODUCE, 9, 1, "c", message)


def test_a_name_of_another_version_is_dropped() -> None:
    topic = Message(name="t", topic_id=UUID(int=5), partition_data=[])
    by_name = decode_request(
        request_frame(ApiKey.PRODUCE, 12, Message(topic_data=[topic]))
    ).message.topic_data[0]
    by_id = decode_request(request_frame(ApiKey.PRODUCE, 13, Message(topic_data=[topic]))).message.topic_data[
        0
    ]
    assert (by_name.name, by_name.topic_id) == ("t", UUID(int=0))
    assert (by_id.name, by_id.topic_id) == ("", UUID(int=5))


def test_fields_not_given_take_the_schemas_default() -> None:
    request = decode_request(
        request_frame(ApiKey.FETCH, 12, Message(topics=[Message(topic="t", partitions=[Message()])]))
    ).message
    assert (request.replica_id, request.session_epoch, request.max_bytes) == (-1, -1, 2**31 - 1)
    assert (request.rack_id, request.cluster_id) == ("", None)
    partition = request.topics[0].partitions[0]
    assert (partition.current_leader_epoch, partition.last_fetched_epoch, partition.fetch_offset) == (
        -1,
        -1,
        0,
    )
    assert request.forgotten_topics_data == []


def test_fields_a_version_lacks_read_as_the_schemas_default_and_are_never_shared() -> None:
    response = decode_response(
        ApiKey.METADATA, 4, response_frame(ApiKey.METADATA, 4, Message(topics=[Message(name="t")]))
    )
    assert response.topics[0].topic_id == UUID(int=0)
    assert response.error_code == 0
    produced = decode_response(ApiKey.PRODUCE, 3, response_frame(ApiKey.PRODUCE, 3, Message()))
    produced.node_endpoints.append(1)
    assert produced.node_endpoints == []
    with pytest.raises(AttributeError, match="no version of ProduceResponse has a field 'nodes'"):
        _ = produced.nodes


def test_a_message_made_by_hand_has_only_what_it_was_given() -> None:
    with pytest.raises(AttributeError, match="Message has no field 'b'; it holds a"):
        _ = Message(a=1).b


@pytest.mark.parametrize(
    ("partition", "complaint"),
    [
        (Message(index="0"), r"topic_data\[0\].partition_data\[0\].index must fit int32, and '0' does not"),
        (Message(index=2**31), r"index must fit int32"),
        (Message(records="text"), r"records must be a buffer or a list of buffers, not 'text'"),
        (None, r"topic_data\[0\].partition_data\[0\] must be a Message, not None"),
    ],
)
def test_a_value_that_does_not_fit_is_named(partition: object, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        encode_request(
            ApiKey.PRODUCE, 9, 1, "c", Message(topic_data=[Message(name="t", partition_data=[partition])])
        )


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("group_id", None, "group_id must be a str, not None"),
        ("group_id", b"g", "group_id must be a str, not b'g'"),
        ("group_id", "g" * 40_000, "group_id is 40000 bytes of UTF-8; Kafka carries at most 32767"),
        ("group_id", "\ud800", "group_id is not valid text"),
        ("protocols", None, "protocols must be a list, not None"),
        ("protocols", [Message(metadata="x")], r"protocols\[0\].metadata must be bytes, not 'x'"),
    ],
)
def test_text_and_lists_that_do_not_fit_are_named(field: str, value: object, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        encode_request(ApiKey.JOIN_GROUP, 5, 1, "c", Message(**{field: value}))


def test_an_error_code_newer_than_kio_passes_through() -> None:
    frame = response_frame(ApiKey.HEARTBEAT, 4, Message(error_code=31_000))
    assert decode_response(ApiKey.HEARTBEAT, 4, frame).error_code == 31_000


def test_times_and_durations_are_integers_in_ms() -> None:
    partition = Message(log_append_time_ms=1_700_000_000_123)
    response = Message(throttle_time_ms=7, responses=[Message(name="t", partition_responses=[partition])])
    decoded = decode_response(ApiKey.PRODUCE, 9, response_frame(ApiKey.PRODUCE, 9, response))
    assert decoded.throttle_time_ms == 7
    assert decoded.responses[0].partition_responses[0].log_append_time_ms == 1_700_000_000_123
    untold = response_frame(ApiKey.PRODUCE, 9, Message(responses=[Message(partition_responses=[Message()])]))
    assert (
        decode_response(ApiKey.PRODUCE, 9, untold).responses[0].partition_responses[0].log_append_time_ms
        == -1
    )


def test_every_known_version_of_every_api_encodes_an_empty_message() -> None:
    for api_key in CLIENT_VERSIONS:
        lowest, highest = versions_of(api_key)
        for version in range(lowest, highest + 1):
            decode_request(request_frame(api_key, version, Message()))
            decode_response(api_key, version, response_frame(api_key, version, Message()))


def test_messages_compare_print_copy_and_travel() -> None:
    message = decode_response(ApiKey.HEARTBEAT, 4, response_frame(ApiKey.HEARTBEAT, 4, Message(error_code=3)))
    assert message == Message(error_code=3, throttle_time_ms=0)
    assert message != Message(error_code=4)
    assert message != 3
    assert repr(message) == "HeartbeatResponse(throttle_time_ms=0, error_code=3)"
    assert copy.deepcopy(message) == message
    assert pickle.loads(pickle.dumps(message)) == message


# Frames


def test_a_frame_inside_one_piece_is_a_view_of_it() -> None:
    piece = b"\0\0\0\x03abc\0\0\0\x00\0\0\0\x02d"
    first, second = FrameReader(10).feed(piece)
    assert (first, second) == (b"abc", b"")
    assert first.obj is piece


def test_a_reused_receive_buffer_does_not_change_frames_already_read() -> None:
    buffer = bytearray(b"\0\0\0\x03abc")
    (frame,) = FrameReader(10).feed(buffer)
    buffer[4:7] = b"xyz"
    assert frame == b"abc"


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\0\0\0\x0b", "size of 11 bytes is above the limit of 10 bytes"),
        (b"\xff\xff\xff\xff", "is negative"),
        (b"GET / HTTP/1.1", "an HTTP request"),
        (b"\x16\x03\x01\x02\x00", "a TLS handshake"),
    ],
)
def test_a_size_that_cannot_be_breaks_the_stream_for_good(data: bytes, complaint: str) -> None:
    reader = FrameReader(10)
    for piece in (data, b"\0\0\0\0"):
        with pytest.raises(DecodeError, match=complaint):
            reader.feed(piece)


def test_memory_is_held_for_bytes_received_not_for_bytes_claimed() -> None:
    reader = FrameReader(100_000_000)
    assert reader.feed(b"\x05\xf5\xe1\x00" + b"x") == []
    assert reader.held_bytes == 5
