/* Kernels that turn Avro and Protobuf into columns and back; their reference implementations are in `fairlead_kafka/formats/kernels.py`,
 * where it is said what operations and slots are. */

#include "formats.h"

enum { VARINT_BYTES_MAX = 10 };

/* Kinds of Avro's operations. */
enum { LONG, INT, BOOLEAN, FLOAT, DOUBLE, BYTES, FIXED, ENUM, UNION, LIST };
/* Kinds of Protobuf's fields. */
enum { P_INT64, P_INT32, P_UINT32, P_SINT64, P_SINT32, P_BOOL, P_FIXED64, P_FIXED32, P_SFIXED32, P_BYTES, P_MESSAGE };
enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

/* An unsigned varint before `stop` into `value`; the position after it, or -1. */
static inline int64_t unsigned_varint(Bytes source, int64_t position, int64_t stop, uint64_t *value) {
    if (position < stop && AT(source, position) < 128) {
        *value = AT(source, position);
        return position + 1;
    }
    uint64_t found = 0;
    for (int shift = 0; shift < 64 && position < stop; shift += 7) {
        uint8_t byte = AT(source, position);
        position++;
        if (shift == 63 && byte > 1) return -1;
        found |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *value = found;
            return position;
        }
    }
    return -1;
}

static inline int64_t unzigzag(uint64_t value) { return (int64_t)(value >> 1) ^ -(int64_t)(value & 1); }
static inline uint64_t zigzag(int64_t value) { return (uint64_t)value << 1 ^ (uint64_t)(value >> 63); }

static inline int64_t read_long(Bytes source, int64_t position, int64_t stop, int64_t *value) {
    uint64_t found;
    position = unsigned_varint(source, position, stop, &found);
    if (position >= 0) *value = unzigzag(found);
    return position;
}

static inline int64_t little_endian(Bytes source, int64_t position, int size) {
    CHECK_PIECE(source, position, size);
    uint64_t value = 0;
    for (int i = size - 1; i >= 0; i--) value = value << 8 | source.data[position + i];
    return (int64_t)value;
}

/* Operations `first` to `last` at `position`: the position after what they read, or -1. */
static int64_t walk(const Table *table, int64_t first, int64_t last, int64_t position, int64_t stop, int64_t row) {
    for (int64_t number = first; number < last; number++) {
        Op op = op_at(table->ops, number);
        int64_t value = 0, size = 0;
        switch (op.kind) {
        case LONG:
        case INT:
        case ENUM:
            position = read_long(table->source, position, stop, &value);
            if (position < 0) return -1;
            if (op.kind == INT && value != (int32_t)value) return -1;
            if (op.kind == ENUM && (value < 0 || value >= op.argument)) return -1;
            put(table, op.slot, row, value);
            break;
        case BOOLEAN:
            if (position >= stop || AT(table->source, position) > 1) return -1;
            put(table, op.slot, row, AT(table->source, position));
            position++;
            break;
        case FLOAT:
        case DOUBLE:
            size = op.kind == FLOAT ? 4 : 8;
            if (size > stop - position) return -1;
            put(table, op.slot, row, little_endian(table->source, position, (int)size));
            position += size;
            break;
        case BYTES:
        case FIXED:
            size = op.argument;
            if (op.kind == BYTES) position = read_long(table->source, position, stop, &size);
            if (position < 0 || size < 0 || size > stop - position) return -1;
            if (op.slot >= 0) {
                put(table, op.slot, row, position);
                put(table, op.slot + 1, row, size);
            }
            position += size;
            break;
        case UNION:
            position = read_long(table->source, position, stop, &value);
            if (position < 0 || value < 0 || value > 1) return -1;
            put_valid(table, op.valid, row, value != op.argument);
            if (value == op.argument) number += op.skip;
            break;
        case LIST:
            position = read_long(table->source, position, stop, &value);
            /* An item is a byte at least. Blocks that tell their size, and further blocks, are not taken here. */
            if (position < 0 || value < 0 || value > stop - position) return -1;
            if (op.slot >= 0) {
                put(table, op.slot, row, position);
                put(table, op.slot + 1, row, value);
            }
            for (int64_t item = 0; item < value && position >= 0; item++)
                position = walk(table, number + 1, number + 1 + op.skip, position, stop, -1);
            if (position < 0) return -1;
            if (value) {
                if (position >= stop || AT(table->source, position) != 0) return -1;
                position++;
            }
            number += op.skip;
            break;
        default:
            return -1;
        }
    }
    return position;
}

int64_t decode_avro(
    Bytes source, Int64s starts, Int64s ends, Int64s counts, int64_t whole, Int64s ops, int64_t rows, Int64sOut slots, BoolsOut valid,
    BoolsOut faults
) {
    Table table = {source, ops, slots, valid, rows};
    int64_t row = 0, wrong = 0, last = ops.size / OP_FIELDS;
    for (int64_t run = 0; run < starts.size; run++) {
        int64_t position = AT(starts, run), stop = AT(ends, run), count = AT(counts, run), item = 0;
        if (position < 0 || stop < position || stop > source.size || count < 0 || count > rows - row) position = -1;
        for (; item < count && position >= 0; item++) position = walk(&table, 0, last, position, stop, row + item);
        bool fault = position < 0 || (whole && count && position != stop);
        AT(faults, run) = fault;
        wrong += fault;
        row += count;
    }
    return wrong;
}

typedef struct {
    BytesOut out;
    int64_t position; /* -1 where there was no room. */
} Target;

static inline bool has_room(Target *target, int64_t size) {
    if (target->position < 0 || size > target->out.size - target->position) target->position = -1;
    return target->position >= 0;
}

static inline void write_varint(Target *target, uint64_t value) {
    if (!has_room(target, VARINT_BYTES_MAX)) return;
    while (value > 127) {
        AT(target->out, target->position) = (uint8_t)(value | 128);
        target->position++;
        value >>= 7;
    }
    AT(target->out, target->position) = (uint8_t)value;
    target->position++;
}

static inline void write_little_endian(Target *target, int64_t value, int size) {
    if (!has_room(target, size)) return;
    for (int i = 0; i < size; i++) AT(target->out, target->position + i) = (uint8_t)((uint64_t)value >> (8 * i));
    target->position += size;
}

static inline void write_piece(Target *target, Bytes source, int64_t start, int64_t size) {
    if (size < 0 || start < 0 || start > source.size - size) target->position = -1;
    if (!has_room(target, size)) return;
    COPY(target->out, target->position, source, start, size);
    target->position += size;
}

#define SLOT(number) AT(slots, (number) * rows + row)

int64_t encode_avro(
    Int64s ops, int64_t rows, Int64s slots, Bools valid, Bytes source, Bytes prefix, Bools given, BytesOut out, Int64sOut offsets
) {
    Target target = {out, 0};
    int64_t last = ops.size / OP_FIELDS;
    AT(offsets, 0) = 0;
    for (int64_t row = 0; row < rows; row++) {
        if (AT(given, row)) {
            write_piece(&target, prefix, 0, prefix.size);
            for (int64_t number = 0; number < last; number++) {
                Op op = op_at(ops, number);
                switch (op.kind) {
                case LONG:
                case INT:
                case ENUM:
                    write_varint(&target, zigzag(SLOT(op.slot)));
                    break;
                case BOOLEAN:
                    write_little_endian(&target, SLOT(op.slot), 1);
                    break;
                case FLOAT:
                    write_little_endian(&target, SLOT(op.slot), 4);
                    break;
                case DOUBLE:
                    write_little_endian(&target, SLOT(op.slot), 8);
                    break;
                case BYTES:
                    write_varint(&target, zigzag(SLOT(op.slot + 1)));
                    write_piece(&target, source, SLOT(op.slot), SLOT(op.slot + 1));
                    break;
                case FIXED:
                    write_piece(&target, source, SLOT(op.slot), SLOT(op.slot + 1));
                    break;
                case UNION:
                    if (AT(valid, op.valid * rows + row))
                        write_varint(&target, zigzag(1 - op.argument));
                    else {
                        write_varint(&target, zigzag(op.argument));
                        number += op.skip;
                    }
                    break;
                case LIST:
                    if (SLOT(op.slot + 2)) write_varint(&target, zigzag(SLOT(op.slot + 2)));
                    write_piece(&target, source, SLOT(op.slot), SLOT(op.slot + 1));
                    write_little_endian(&target, 0, 1);
                    break;
                default:
                    return -1;
                }
            }
            if (target.position < 0) return -1;
        }
        AT(offsets, row + 1) = target.position;
    }
    return target.position;
}

/* The field of a number: fields come in the order of their numbers as a rule, so the search begins behind the one found last. */
static inline int64_t find_field(Int64s ops, int64_t count, int64_t number, int64_t after) {
    for (int64_t i = 0; i < count; i++) {
        int64_t at = after + i < count ? after + i : after + i - count;
        if (AT(ops, at * OP_FIELDS + 2) == number) return at;
    }
    return -1;
}

static int64_t read_message(const Table *table, int64_t position, int64_t stop, int64_t row) {
    int64_t count = table->ops.size / OP_FIELDS, next = 0;
    while (position < stop) {
        uint64_t tag, value = 0;
        position = unsigned_varint(table->source, position, stop, &tag);
        if (position < 0 || tag >> 32 || tag < 8) return -1;
        int64_t start = position;
        switch (tag & 7) {
        case WIRE_VARINT:
            position = unsigned_varint(table->source, position, stop, &value);
            if (position < 0) return -1;
            break;
        case WIRE_64:
        case WIRE_32: {
            int size = (tag & 7) == WIRE_64 ? 8 : 4;
            if (size > stop - position) return -1;
            value = (uint64_t)little_endian(table->source, position, size);
            position += size;
            break;
        }
        case WIRE_BYTES:
            position = unsigned_varint(table->source, position, stop, &value);
            if (position < 0 || value > (uint64_t)(stop - position)) return -1;
            start = position;
            position += (int64_t)value;
            break;
        default:
            return -1;
        }
        int64_t found = find_field(table->ops, count, (int64_t)(tag >> 3), next);
        if (found < 0) continue;
        Op op = op_at(table->ops, found);
        if (op.skip != (int64_t)(tag & 7)) return -1; /* Packed, or of another type: not taken here. */
        next = found + 1;
        switch (op.kind) {
        case P_INT32:
        case P_SFIXED32:
            put(table, op.slot, row, (int32_t)value);
            break;
        case P_UINT32:
        case P_FIXED32:
            put(table, op.slot, row, (int64_t)(uint32_t)value);
            break;
        case P_SINT64:
            put(table, op.slot, row, unzigzag(value));
            break;
        case P_SINT32:
            put(table, op.slot, row, unzigzag((uint32_t)value));
            break;
        case P_BOOL:
            put(table, op.slot, row, value != 0);
            break;
        case P_MESSAGE: /* A message that comes twice is merged: not here. */
            if (op.valid >= 0 && AT(table->valid, op.valid * table->rows + row)) return -1;
            put(table, op.slot, row, start);
            put(table, op.slot + 1, row, (int64_t)value);
            break;
        case P_BYTES:
            put(table, op.slot, row, start);
            put(table, op.slot + 1, row, (int64_t)value);
            break;
        default:
            put(table, op.slot, row, (int64_t)value);
        }
        put_valid(table, op.valid, row, true);
    }
    return position;
}

int64_t decode_protobuf(
    Bytes source, Int64s starts, Int64s ends, Bools given, Int64s ops, Int64sOut slots, BoolsOut valid, BoolsOut faults
) {
    int64_t rows = starts.size, wrong = 0;
    Table table = {source, ops, slots, valid, rows};
    for (int64_t row = 0; row < rows; row++) {
        if (!AT(given, row)) continue;
        int64_t start = AT(starts, row), stop = AT(ends, row);
        bool fault = start < 0 || stop < start || stop > source.size || read_message(&table, start, stop, row) < 0;
        AT(faults, row) = fault;
        wrong += fault;
    }
    return wrong;
}

int64_t encode_protobuf(
    Int64s ops, int64_t rows, Int64s slots, Bools valid, Bytes source, Bytes prefix, Bools given, BytesOut out, Int64sOut offsets
) {
    Target target = {out, 0};
    int64_t last = ops.size / OP_FIELDS;
    AT(offsets, 0) = 0;
    for (int64_t row = 0; row < rows; row++) {
        if (AT(given, row)) {
            write_piece(&target, prefix, 0, prefix.size);
            for (int64_t number = 0; number < last; number++) {
                Op op = op_at(ops, number);
                bool bytes = op.kind == P_BYTES || op.kind == P_MESSAGE;
                int64_t value = SLOT(op.slot + bytes);
                /* Without presence of its own a field is written if it is not zero; negative zero of a float is not zero. */
                if (op.valid >= 0 ? !AT(valid, op.valid * rows + row) : !value) continue;
                write_varint(&target, (uint64_t)op.argument << 3 | (uint64_t)op.skip);
                switch (op.kind) {
                case P_SINT64:
                    write_varint(&target, zigzag(value));
                    break;
                case P_SINT32:
                    write_varint(&target, (uint32_t)zigzag((int32_t)value));
                    break;
                case P_FIXED64:
                    write_little_endian(&target, value, 8);
                    break;
                case P_FIXED32:
                case P_SFIXED32:
                    write_little_endian(&target, value, 4);
                    break;
                case P_BYTES:
                case P_MESSAGE:
                    write_varint(&target, (uint64_t)value);
                    write_piece(&target, source, SLOT(op.slot), value);
                    break;
                default:
                    write_varint(&target, (uint64_t)value);
                }
            }
            if (target.position < 0) return -1;
        }
        AT(offsets, row + 1) = target.position;
    }
    return target.position;
}

int64_t gather_pieces(Bytes source, Int64s starts, Int64s sizes, BytesOut out) {
    Target target = {out, 0};
    for (int64_t i = 0; i < starts.size && target.position >= 0; i++) write_piece(&target, source, AT(starts, i), AT(sizes, i));
    return target.position;
}
