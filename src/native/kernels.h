/* What kernels take and return: flat arrays and 64-bit integers. Nothing here knows of Python.
 *
 * Kernels that read bytes from anywhere read and write nothing outside of their arrays, whatever the bytes say. A build with CHECKED
 * looks at every index and every copied piece, and leaves by `out_of_bounds`: for fuzzing.
 */
#ifndef FAIRLEAD_KERNELS_H
#define FAIRLEAD_KERNELS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define INLINED static inline __attribute__((always_inline))

#define ARRAY(name, type) \
    typedef struct { \
        type *data; \
        int64_t size; \
    } name

ARRAY(Bytes, const uint8_t);
ARRAY(Bools, const uint8_t);
ARRAY(Int32s, const int32_t);
ARRAY(Int64s, const int64_t);
ARRAY(BytesOut, uint8_t);
ARRAY(BoolsOut, uint8_t);
ARRAY(Int32sOut, int32_t);
ARRAY(Int64sOut, int64_t);

#ifdef CHECKED
_Noreturn void out_of_bounds(const char *file, int line, int64_t index, int64_t size);
static inline int64_t checked(int64_t index, int64_t size, const char *file, int line) {
    if (index < 0 || index >= size) out_of_bounds(file, line, index, size);
    return index;
}
#define AT(array, index) ((array).data[checked((index), (array).size, __FILE__, __LINE__)])
#define CHECK_PIECE(array, start, count) \
    do { \
        if ((start) < 0 || (count) < 0 || (start) > (array).size - (count)) out_of_bounds(__FILE__, __LINE__, (start), (array).size); \
    } while (0)
#else
#define AT(array, index) ((array).data[index])
#define CHECK_PIECE(array, start, count) ((void)0)
#endif

/* `target[at:at + count] = source[start:start + count]`. Records are short as a rule, and a call of memcpy takes longer than they do. */
#define COPY(target, at, source, start, count) \
    do { \
        CHECK_PIECE(target, at, count); \
        CHECK_PIECE(source, start, count); \
        memcpy((target).data + (at), (source).data + (start), (size_t)(count)); \
    } while (0)

/* `target[:count] = value`, for a value whose bytes are all the same as those of a bool. */
#define FILL(target, count, value) \
    do { \
        CHECK_PIECE(target, 0, count); \
        memset((target).data, (value), (size_t)(count) * sizeof *(target).data); \
    } while (0)

/* What can be wrong with a batch: the codes of `fairlead_kafka.records.faults`. */
enum {
    TRUNCATED = 1, VARINT, RECORD_LENGTH, FIELD_LENGTH, RECORD_REST, HEADER_COUNT, HEADER_KEY, BATCH_REST, OFFSET_DELTA, BATCH_LENGTH,
    MAGIC, BATCH_OFFSETS, CODEC, COUNT, ROOM,
};

typedef struct {
    int64_t fault, position;
} Checked;

typedef struct {
    int64_t count, position, last_delta, fault;
} Whole;

typedef struct {
    int64_t filled, fault, position;
} Scanned;

typedef struct {
    int64_t wrong, unescaped;
} Taken;

/* The keys, values and headers of records: `FlatColumns` of `fairlead_kafka.records.columns`. */
typedef struct {
    Bytes key_data;
    Int64s key_offsets;
    Bools key_valid;
    Bytes value_data;
    Int64s value_offsets;
    Bools value_valid;
    Int64s header_offsets;
    Bytes header_key_data;
    Int64s header_key_offsets;
    Bytes header_value_data;
    Int64s header_value_offsets;
    Bools header_value_valid;
} Columns;

/* Where `decode_records` puts records. */
typedef struct {
    Int64sOut offsets, timestamps;
    Int32sOut timestamp_types;
    Int64sOut key_offsets;
    BoolsOut key_valid;
    BytesOut key_data;
    Int64sOut value_offsets;
    BoolsOut value_valid;
    BytesOut value_data;
    Int64sOut header_offsets, header_starts, cursors;
} Decoded;

/* What `encode_batches` stamps on each batch. */
typedef struct {
    int64_t header_size, create_time, base_timestamp, first_delta, attributes, producer_id, producer_epoch, base_offset, leader_epoch;
} Stamp;

Checked check_records(Bytes source, int64_t start, int64_t stop, int64_t count);
Whole whole_records(Bytes source, int64_t stop, int64_t most);
Checked keep_records(Bytes source, int64_t start, int64_t stop, Bools keep, BytesOut target);
Scanned scan_batches(Bytes source, int64_t position, Int64sOut rows);
Checked decode_records(Bytes source, Int64sOut rows, int64_t first, int64_t last, int64_t inflated_size, int64_t from_offset, Decoded out);
void decode_headers(
    Bytes source, int64_t first, int64_t last, Int64s header_offsets, Int64s header_starts, Int64sOut key_offsets, BytesOut key_data,
    Int64sOut value_offsets, BoolsOut value_valid, BytesOut value_data
);

void measure_records(Columns columns, Int64sOut sizes);
int64_t encode_batches(
    Columns columns, Int64s timestamps, Int64s order, Int64s bounds, Int64s sequences, BytesOut out, Int64sOut table, int64_t position,
    Stamp stamp
);
int64_t cut_by_size(Int64s sizes, Int64s order, int64_t start, int64_t stop, int64_t room, int64_t limit, Int64sOut cuts);

void hash_keys(Bytes data, Int64s offsets, Int32sOut hashes);
void partition_keys(Bytes data, Int64s offsets, Bools valid, int64_t partition_count, Int32sOut partitions);
void sort_by_partition(Int32s partitions, Int64sOut order, Int64sOut bounds);

int64_t decode_avro(
    Bytes source, Int64s starts, Int64s ends, Int64s counts, int64_t whole, Int64s ops, int64_t rows, Int64sOut slots, BoolsOut valid,
    BoolsOut faults
);
int64_t encode_avro(
    Int64s ops, int64_t rows, Int64s slots, Bools valid, Bytes source, Bytes prefix, Bools given, BytesOut out, Int64sOut offsets
);
int64_t decode_protobuf(
    Bytes source, Int64s starts, Int64s ends, Bools given, Int64s ops, Int64sOut slots, BoolsOut valid, BoolsOut faults
);
int64_t encode_protobuf(
    Int64s ops, int64_t rows, Int64s slots, Bools valid, Bytes source, Bytes prefix, Bools given, BytesOut out, Int64sOut offsets
);
Taken decode_json(
    Bytes source, Int64s starts, Int64s ends, Bools given, Int64s ops, Bytes names, Int64s name_offsets, Int64s powers, Int64sOut order,
    Int64sOut places, Int64sOut slots, BoolsOut valid, BoolsOut faults, BytesOut unescaped
);
int64_t gather_pieces(Bytes source, Int64s starts, Int64s sizes, BytesOut out);

#endif
