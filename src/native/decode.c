/* Kernels that walk over record bytes; their reference implementations are in `fairlead_kafka/records/decode_kernels.py`. */

#include "kernels.h"

enum { HEADERS_PER_RECORD_MAX = 100000, BATCH_HEADER_SIZE = 61, ROW_FIELDS = 13 };

typedef struct {
    int64_t value, position; /* Of what follows; or minus a fault. */
} Varint;

/* `read_varint` for any number of bytes. */
static Varint read_long_varint(Bytes source, int64_t position, int64_t stop, int last_shift) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        if (position >= stop) return (Varint){0, -TRUNCATED};
        uint8_t byte = AT(source, position);
        position++;
        if (shift == last_shift && byte > (last_shift == 28 ? 15 : 1)) return (Varint){0, -VARINT};
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) break;
    }
    return (Varint){(int64_t)(value >> 1) ^ -(int64_t)(value & 1), position};
}

/* A zigzag varint before `stop`. `last_shift` is 28 for 32 bits, 63 for 64: where the last byte goes, which may hold only the bits
 * that are left. One byte is the usual case. */
static inline Varint read_varint(Bytes source, int64_t position, int64_t stop, int last_shift) {
    if (position < stop && AT(source, position) < 128) {
        int64_t byte = AT(source, position);
        return (Varint){(byte >> 1) ^ -(byte & 1), position + 1};
    }
    return read_long_varint(source, position, stop, last_shift);
}

/* A signed big-endian integer of `size` bytes. */
static inline int64_t read_integer(Bytes source, int64_t position, int size) {
    CHECK_PIECE(source, position, size);
    uint64_t value = 0;
    for (int i = 0; i < size; i++) value = value << 8 | source.data[position + i];
    return (int64_t)(value << (64 - 8 * size)) >> (64 - 8 * size);
}

static inline int64_t at_least_0(int64_t number) { return number < 0 ? 0 : number; }

/* The length of a field that ends by `stop`; one below `least`, or of more than is left, is the fault `wrong`. */
static inline Varint read_length(Bytes source, int64_t position, int64_t stop, int64_t least, int64_t wrong) {
    Varint length = read_varint(source, position, stop, 28);
    if (length.position >= 0 && (length.value < least || length.value > stop - length.position)) return (Varint){0, -wrong};
    return length;
}

typedef struct {
    int64_t stop; /* The position after it, or of the fault. */
    int64_t fault;
    int64_t timestamp_delta, offset_delta;
    int64_t key_start, key_size, value_start, value_size; /* A size of -1 is null. */
    int64_t headers, header_start, header_key_bytes, header_value_bytes;
} Record;

static inline Record faulty(int64_t position, int64_t fault) { return (Record){.stop = position, .fault = fault}; }

typedef struct {
    int64_t position, fault, key_bytes, value_bytes; /* The position after them, or of the fault. */
} Headers;

/* Walk over `count` headers. (What it finds is returned, not written to a record: that would keep the record in memory.) */
static Headers skip_headers(Bytes source, int64_t position, int64_t stop, int64_t count) {
    Headers found = {.position = position};
    for (int64_t i = 0; i < count; i++) {
        Varint key = read_length(source, found.position, stop, 0, HEADER_KEY);
        if (key.position < 0) return (Headers){found.position, -key.position, 0, 0};
        found.key_bytes += key.value;
        found.position = key.position + key.value;
        Varint value = read_length(source, found.position, stop, -1, FIELD_LENGTH);
        if (value.position < 0) return (Headers){found.position, -value.position, 0, 0};
        found.value_bytes += at_least_0(value.value);
        found.position = value.position + at_least_0(value.value);
    }
    return found;
}

/* The record at `begin`, headers checked. */
INLINED Record read_record(Bytes source, int64_t begin, int64_t end) {
    Varint number = read_varint(source, begin, end, 28);
    if (number.position < 0) return faulty(begin, -number.position);
    if (number.value < 6 || number.value > end - number.position) return faulty(begin, RECORD_LENGTH);
    Record record = {0};
    int64_t stop = number.position + number.value;
    int64_t at = number.position + 1; /* Behind the attributes, which mean nothing. */
    number = read_varint(source, at, stop, 63);
    if (number.position < 0) return faulty(at, -number.position);
    record.timestamp_delta = number.value;
    at = number.position;
    number = read_varint(source, at, stop, 28);
    if (number.position < 0) return faulty(at, -number.position);
    record.offset_delta = number.value;
    at = number.position;
    number = read_length(source, at, stop, -1, FIELD_LENGTH);
    if (number.position < 0) return faulty(at, -number.position);
    record.key_start = number.position;
    record.key_size = number.value;
    at = number.position + at_least_0(number.value);
    number = read_length(source, at, stop, -1, FIELD_LENGTH);
    if (number.position < 0) return faulty(at, -number.position);
    record.value_start = number.position;
    record.value_size = number.value;
    at = number.position + at_least_0(number.value);
    number = read_varint(source, at, stop, 28);
    if (number.position < 0) return faulty(at, -number.position);
    record.headers = number.value;
    record.header_start = number.position;
    if (record.headers < 0 || record.headers > HEADERS_PER_RECORD_MAX || record.headers * 2 > stop - number.position)
        return faulty(at, HEADER_COUNT);
    record.stop = record.header_start;
    if (record.headers) {
        Headers headers = skip_headers(source, record.header_start, stop, record.headers);
        if (headers.fault) return faulty(headers.position, headers.fault);
        record.stop = headers.position;
        record.header_key_bytes = headers.key_bytes;
        record.header_value_bytes = headers.value_bytes;
    }
    if (record.stop != stop) return faulty(record.stop, RECORD_REST);
    return record;
}

/* 0 <= start <= stop <= source.size. Checks that exactly `count` sound records with offset deltas 0 to count - 1 lie between. */
Checked check_records(Bytes source, int64_t start, int64_t stop, int64_t count) {
    int64_t position = start;
    for (int64_t i = 0; i < count; i++) {
        Record record = read_record(source, position, stop);
        if (record.fault) return (Checked){record.fault, record.stop};
        if (record.offset_delta != i) return (Checked){OFFSET_DELTA, position};
        position = record.stop;
    }
    return (Checked){position == stop ? 0 : BATCH_REST, position};
}

/* 0 <= stop <= source.size. The sound records from the start of `source` on, `most` of them at most, that end by `stop`: how many, the
 * position after them, the offset delta of the last or -1, the fault of what follows or 0. */
Whole whole_records(Bytes source, int64_t stop, int64_t most) {
    Whole found = {.last_delta = -1};
    while (found.count < most && found.position < stop) {
        Record record = read_record(source, found.position, stop);
        if (record.fault) {
            found.fault = record.fault;
            break;
        }
        found.count++;
        found.last_delta = record.offset_delta;
        found.position = record.stop;
    }
    return found;
}

/* 0 <= start <= stop <= source.size and target.size >= stop - start. Copies those of the first keep.size records that are to be kept,
 * byte for byte; the position is then how many bytes that is. */
Checked keep_records(Bytes source, int64_t start, int64_t stop, Bools keep, BytesOut target) {
    int64_t position = start, written = 0;
    for (int64_t i = 0; i < keep.size; i++) {
        Record record = read_record(source, position, stop);
        if (record.fault) return (Checked){record.fault, record.stop};
        if (AT(keep, i)) {
            COPY(target, written, source, position, record.stop - position);
            written += record.stop - position;
        }
        position = record.stop;
    }
    return (Checked){0, written};
}

/* Rows of 13 numbers, the fields of `BatchHeader` in order. Reads headers from `position` on until the rows are full, the bytes end or
 * a batch is cut short; the position is then behind the last, or that of the fault. */
Scanned scan_batches(Bytes source, int64_t position, Int64sOut rows) {
    int64_t filled = 0;
    while (filled < rows.size / ROW_FIELDS && source.size - position > 16) {
        int64_t size = read_integer(source, position + 8, 4) + 12;
        if (AT(source, position + 16) != 2) return (Scanned){filled, MAGIC, position + 16};
        if (size < BATCH_HEADER_SIZE) return (Scanned){filled, BATCH_LENGTH, position + 8};
        if (size > source.size - position) break;
        int64_t base_offset = read_integer(source, position, 8), last_delta = read_integer(source, position + 23, 4);
        if (base_offset < 0) return (Scanned){filled, BATCH_OFFSETS, position};
        if (last_delta < 0 || base_offset > INT64_MAX - last_delta) return (Scanned){filled, BATCH_OFFSETS, position + 23};
        int64_t attributes = read_integer(source, position + 21, 2), count = read_integer(source, position + 57, 4);
        if ((attributes & 7) > 4) return (Scanned){filled, CODEC, position + 21};
        if (count < 0 || count > last_delta + 1 || (!(attributes & 7) && count * 7 > size - BATCH_HEADER_SIZE))
            return (Scanned){filled, COUNT, position + 57};
        const int64_t row[ROW_FIELDS] = {
            position,
            size,
            base_offset,
            read_integer(source, position + 12, 4),
            read_integer(source, position + 17, 4) & 0xFFFFFFFF,
            attributes,
            last_delta,
            read_integer(source, position + 27, 8),
            read_integer(source, position + 35, 8),
            read_integer(source, position + 43, 8),
            read_integer(source, position + 51, 2),
            read_integer(source, position + 53, 4),
            count,
        };
        CHECK_PIECE(rows, filled * ROW_FIELDS, ROW_FIELDS);
        memcpy(rows.data + filled * ROW_FIELDS, row, sizeof row);
        filled++;
        position += size;
    }
    return (Scanned){filled, 0, position};
}

/* Write what was left out of a column whose first `count` items are null. */
static void begin_column(Int64sOut offsets, BoolsOut valid, int64_t count) {
    FILL(offsets, count + 1, 0);
    FILL(valid, count, false);
}

/* Batches first to last - 1 of `rows` (see `scan_batches`) lie within `source`, uncompressed; or, where `inflated_size` >= 0, the one
 * batch's records are the whole of `source`, of that size.
 *
 * Appends their records from `from_offset` on to the columns, at `cursors`: 0 records, 1 key bytes, 2 value bytes, 3 headers, 4 header
 * key bytes, 5 header value bytes, 6 null keys, 7 null values, 8 the row at work. Columns with n + 1 offsets have their first written by
 * the caller. Columns of keys, values or headers without room are not wanted, and not filled. Headers are checked and counted;
 * `decode_headers` takes them.
 *
 * What says nothing is not written, for writing it costs as much as the rest: keys and headers before the first record that has any, and
 * which values are valid while all are. */
Checked decode_records(Bytes source, Int64sOut rows, int64_t first, int64_t last, int64_t inflated_size, int64_t from_offset, Decoded out) {
    int64_t *cursors = out.cursors.data;
    int64_t at = cursors[0], key_at = cursors[1], value_at = cursors[2], null_keys = cursors[6], null_values = cursors[7];
    bool wants_keys = out.key_valid.size > 0, wants_values = out.value_valid.size > 0, counts_headers = out.header_starts.size > 0;
    for (int64_t row = first; row < last; row++) {
        CHECK_PIECE(rows, row * ROW_FIELDS, ROW_FIELDS);
        const int64_t *batch = rows.data + row * ROW_FIELDS;
        cursors[8] = row;
        int64_t position = inflated_size < 0 ? batch[0] + BATCH_HEADER_SIZE : 0;
        int64_t end = inflated_size < 0 ? batch[0] + batch[1] : inflated_size;
        int64_t base_offset = batch[2], last_delta = batch[6], count = batch[12], previous_delta = -1;
        bool log_append = batch[5] >> 3 & 1;
        int64_t base_timestamp = log_append ? batch[8] : batch[7];
        for (int64_t i = 0; i < count; i++) {
            int64_t begin = position;
            Record record = read_record(source, begin, end);
            if (record.fault) return (Checked){record.fault, record.stop};
            position = record.stop;
            if (record.offset_delta <= previous_delta || record.offset_delta > last_delta) return (Checked){OFFSET_DELTA, begin};
            previous_delta = record.offset_delta;
            if (base_offset + record.offset_delta < from_offset) continue;
            if (at >= out.offsets.size || (wants_values && value_at + record.value_size > out.value_data.size) ||
                (wants_keys && key_at + record.key_size > out.key_data.size))
                return (Checked){ROOM, begin};
            AT(out.offsets, at) = base_offset + record.offset_delta;
            AT(out.timestamps, at) = log_append ? base_timestamp : base_timestamp + record.timestamp_delta;
            AT(out.timestamp_types, at) = log_append;
            if (wants_keys && record.key_size < 0 && null_keys == at) {
                null_keys++;
            } else if (wants_keys) {
                if (null_keys == at) begin_column(out.key_offsets, out.key_valid, at);
                AT(out.key_valid, at) = record.key_size >= 0;
                if (record.key_size < 0) {
                    null_keys++;
                } else if (record.key_size > 0) {
                    COPY(out.key_data, key_at, source, record.key_start, record.key_size);
                    key_at += record.key_size;
                }
                AT(out.key_offsets, at + 1) = key_at;
            }
            if (wants_values) {
                if (record.value_size < 0) {
                    if (!null_values) FILL(out.value_valid, at, true);
                    AT(out.value_valid, at) = false;
                    null_values++;
                } else {
                    if (null_values) AT(out.value_valid, at) = true;
                    COPY(out.value_data, value_at, source, record.value_start, record.value_size);
                    value_at += record.value_size;
                }
                AT(out.value_offsets, at + 1) = value_at;
            }
            if (counts_headers && (record.headers || cursors[3])) {
                if (!cursors[3]) {
                    FILL(out.header_starts, at, 0);
                    FILL(out.header_offsets, at + 1, 0);
                }
                cursors[3] += record.headers;
                cursors[4] += record.header_key_bytes;
                cursors[5] += record.header_value_bytes;
                AT(out.header_starts, at) = record.header_start;
                AT(out.header_offsets, at + 1) = cursors[3];
            }
            at++;
        }
        if (position != end) return (Checked){BATCH_REST, position};
    }
    cursors[0] = at, cursors[1] = key_at, cursors[2] = value_at, cursors[6] = null_keys, cursors[7] = null_values;
    return (Checked){0, 0};
}

/* `decode_records` has checked records first to last - 1 of this `source`, and the columns have exactly the size it counted. Fills in
 * their headers; the first offsets of the columns are written. */
void decode_headers(
    Bytes source, int64_t first, int64_t last, Int64s header_offsets, Int64s header_starts, Int64sOut key_offsets, BytesOut key_data,
    Int64sOut value_offsets, BoolsOut value_valid, BytesOut value_data
) {
    for (int64_t record = first; record < last; record++) {
        int64_t position = AT(header_starts, record);
        for (int64_t header = AT(header_offsets, record); header < AT(header_offsets, record + 1); header++) {
            Varint key = read_varint(source, position, source.size, 28);
            int64_t at = AT(key_offsets, header);
            COPY(key_data, at, source, key.position, key.value);
            AT(key_offsets, header + 1) = at + key.value;
            Varint value = read_varint(source, key.position + key.value, source.size, 28);
            AT(value_valid, header) = value.value >= 0;
            int64_t size = at_least_0(value.value);
            at = AT(value_offsets, header);
            COPY(value_data, at, source, value.position, size);
            AT(value_offsets, header + 1) = at + size;
            position = value.position + size;
        }
    }
}
