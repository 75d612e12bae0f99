/* Kernels that measure and encode records; their reference implementations are in `fairlead_kafka/records/encode_kernels.py`. */

#include "kernels.h"

/* Bytes of a number as a varint, taken as unsigned. */
static inline int64_t size_of_varint(uint64_t number) {
    if (number < 128) return 1;
    if (number < 16384) return 2;
    return (70 - __builtin_clzll(number)) / 7; /* Seven bits a byte. */
}

/* Bytes of a field of `size` bytes with its length; a size of -1 is null. */
static inline int64_t size_of_field(int64_t size) { return size < 0 ? 1 : size_of_varint((uint64_t)size << 1) + size; }

static inline int64_t put_varint(BytesOut out, int64_t position, uint64_t number) {
    for (; number >= 128; number >>= 7) AT(out, position++) = (uint8_t)(number | 128);
    AT(out, position++) = (uint8_t)number;
    return position;
}

/* Write a length and that many bytes of `data`; a size of -1 is null. Returns the position after. */
static inline int64_t put_field(BytesOut out, int64_t position, Bytes data, int64_t start, int64_t size) {
    if (size < 0) {
        AT(out, position) = 1;
        return position + 1;
    }
    position = put_varint(out, position, (uint64_t)size << 1);
    COPY(out, position, data, start, size);
    return position + size;
}

/* Write the low `size` bytes of `number`, big-endian; returns the position after. */
static inline int64_t put_integer(BytesOut out, int64_t position, int64_t number, int size) {
    for (int i = size - 1; i >= 0; i--) AT(out, position++) = (uint8_t)(number >> 8 * i);
    return position;
}

/* The size of item `index` of a column, -1 if it is null; no `valid` means that none is. */
static inline int64_t size_of_item(Int64s offsets, Bools valid, int64_t index) {
    if (valid.size && !AT(valid, index)) return -1;
    return AT(offsets, index + 1) - AT(offsets, index);
}

/* Bytes of the headers of record `index` with their count and lengths. */
static int64_t size_of_headers(const Columns *columns, int64_t index) {
    int64_t first = AT(columns->header_offsets, index), last = AT(columns->header_offsets, index + 1);
    int64_t size = size_of_varint((uint64_t)(last - first) << 1);
    for (int64_t header = first; header < last; header++) {
        size += size_of_field(AT(columns->header_key_offsets, header + 1) - AT(columns->header_key_offsets, header));
        size += size_of_field(size_of_item(columns->header_value_offsets, columns->header_value_valid, header));
    }
    return size;
}

/* Write the count and the headers of record `index`; returns the position after. */
static int64_t put_headers(BytesOut out, int64_t position, const Columns *columns, int64_t index) {
    int64_t first = AT(columns->header_offsets, index), last = AT(columns->header_offsets, index + 1);
    position = put_varint(out, position, (uint64_t)(last - first) << 1);
    for (int64_t header = first; header < last; header++) {
        int64_t start = AT(columns->header_key_offsets, header);
        position = put_field(out, position, columns->header_key_data, start, AT(columns->header_key_offsets, header + 1) - start);
        int64_t size = size_of_item(columns->header_value_offsets, columns->header_value_valid, header);
        start = size < 0 ? 0 : AT(columns->header_value_offsets, header);
        position = put_field(out, position, columns->header_value_data, start, size);
    }
    return position;
}

/* The columns have `sizes.size` records. Fills `sizes` as `RecordColumns.sizes_bytes` says. */
void measure_records(Columns columns, Int64sOut sizes) {
    bool has_keys = columns.key_offsets.size > 0, has_values = columns.value_offsets.size > 0;
    bool has_headers = columns.header_offsets.size > 0;
    for (int64_t i = 0; i < sizes.size; i++) {
        int64_t key_size = has_keys ? size_of_item(columns.key_offsets, columns.key_valid, i) : -1;
        int64_t value_size = has_values ? size_of_item(columns.value_offsets, columns.value_valid, i) : -1;
        int64_t body = 5 + size_of_field(key_size) + size_of_field(value_size);
        if (has_headers) body += size_of_headers(&columns, i) - 1;
        AT(sizes, i) = size_of_varint((uint64_t)body << 1) + body;
    }
}

/* Write the 61 bytes at `begin`, all but the CRC, which stays zero. */
static void put_batch_header(
    BytesOut out, int64_t begin, int64_t end, int64_t count, int64_t base_timestamp, int64_t max_timestamp, int64_t base_sequence,
    const Stamp *stamp
) {
    int64_t position = put_integer(out, begin, stamp->base_offset, 8);
    position = put_integer(out, position, end - begin - 12, 4);
    position = put_integer(out, position, stamp->leader_epoch, 4);
    position = put_integer(out, position, 2, 1);
    position = put_integer(out, position, 0, 4);
    position = put_integer(out, position, stamp->attributes, 2);
    position = put_integer(out, position, count - 1, 4);
    position = put_integer(out, position, base_timestamp, 8);
    position = put_integer(out, position, max_timestamp, 8);
    position = put_integer(out, position, stamp->producer_id, 8);
    position = put_integer(out, position, stamp->producer_epoch, 2);
    position = put_integer(out, position, base_sequence, 4);
    put_integer(out, position, count, 4);
}

/* The pairs in `bounds` ascend and, through `order` if it has items, name records of the columns.
 *
 * Encodes records bounds[2b] to bounds[2b + 1] - 1 as batch b, from `position` of `out` on; returns the position after the last, or -1
 * with nothing written beyond `out` where that is too small. `table` takes start, base and max timestamp of each batch. A `header_size`
 * of 61 gives each its header (the CRC stays zero), its base timestamp from its first record and deltas from 0; with 0 the records
 * continue a batch of `first_delta` records and `base_timestamp`. No timestamp, or -1, is `create_time`. */
int64_t encode_batches(
    Columns columns, Int64s timestamps, Int64s order, Int64s bounds, Int64s sequences, BytesOut out, Int64sOut table, int64_t position,
    Stamp stamp
) {
    bool has_keys = columns.key_offsets.size > 0, has_values = columns.value_offsets.size > 0;
    bool has_headers = columns.header_offsets.size > 0;
    int64_t base_timestamp = stamp.base_timestamp;
    for (int64_t batch = 0; batch < bounds.size / 2; batch++) {
        int64_t begin = position, newest = -1, delta = stamp.first_delta;
        if (position + stamp.header_size > out.size) return -1;
        position += stamp.header_size;
        int64_t first = AT(bounds, 2 * batch), last = AT(bounds, 2 * batch + 1);
        for (int64_t place = first; place < last; place++) {
            int64_t i = order.size ? AT(order, place) : place;
            int64_t timestamp = timestamps.size && AT(timestamps, i) != -1 ? AT(timestamps, i) : stamp.create_time;
            if (!delta) base_timestamp = timestamp;
            newest = place == first || timestamp > newest ? timestamp : newest;
            int64_t past = timestamp - base_timestamp;
            uint64_t zigzag = (uint64_t)past << 1 ^ (uint64_t)(past >> 63);
            int64_t key_size = has_keys ? size_of_item(columns.key_offsets, columns.key_valid, i) : -1;
            int64_t value_size = has_values ? size_of_item(columns.value_offsets, columns.value_valid, i) : -1;
            int64_t body = 2 + size_of_varint((uint64_t)delta << 1) + size_of_field(key_size) + size_of_field(value_size);
            body += size_of_varint(zigzag);
            if (has_headers) body += size_of_headers(&columns, i) - 1;
            if (position + size_of_varint((uint64_t)body << 1) + body > out.size) return -1;
            position = put_varint(out, position, (uint64_t)body << 1);
            AT(out, position) = 0;
            position = put_varint(out, position + 1, zigzag);
            position = put_varint(out, position, (uint64_t)delta << 1);
            position = put_field(out, position, columns.key_data, key_size < 0 ? 0 : AT(columns.key_offsets, i), key_size);
            position = put_field(out, position, columns.value_data, value_size < 0 ? 0 : AT(columns.value_offsets, i), value_size);
            if (has_headers) {
                position = put_headers(out, position, &columns, i);
            } else {
                AT(out, position) = 0;
                position++;
            }
            delta++;
        }
        AT(table, 3 * batch) = begin;
        AT(table, 3 * batch + 1) = base_timestamp;
        AT(table, 3 * batch + 2) = newest;
        if (stamp.header_size > 0)
            put_batch_header(out, begin, position, delta, base_timestamp, newest, sequences.size ? AT(sequences, batch) : -1, &stamp);
    }
    return position;
}

/* start <= stop within `order` (or `sizes`, without order), and room for stop - start + 1 `cuts`. Fills `cuts` with the ends of the
 * pieces and returns how many there are; `records.cut` says what a piece is. */
int64_t cut_by_size(Int64s sizes, Int64s order, int64_t start, int64_t stop, int64_t room, int64_t limit, Int64sOut cuts) {
    int64_t count = 0, filled = 0, begin = start, left = room;
    for (int64_t place = start; place < stop; place++) {
        int64_t size = AT(sizes, order.size ? AT(order, place) : place);
        if (filled + size > left && (place > begin || !count)) {
            AT(cuts, count++) = place;
            begin = place;
            filled = 0;
            left = limit;
        }
        filled += size;
    }
    AT(cuts, count) = stop;
    return count + 1;
}
