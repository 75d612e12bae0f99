/* What the kernels of formats have in common: operations and slots, as `fairlead_kafka/formats/kernels.py` says what they are. */
#ifndef FAIRLEAD_FORMATS_H
#define FAIRLEAD_FORMATS_H

#include "kernels.h"

enum { OP_FIELDS = 5 };

typedef struct {
    int64_t kind, slot, argument, skip, valid;
} Op;

static inline Op op_at(Int64s ops, int64_t number) {
    CHECK_PIECE(ops, number * OP_FIELDS, OP_FIELDS);
    const int64_t *at = ops.data + number * OP_FIELDS;
    return (Op){at[0], at[1], at[2], at[3], at[4]};
}

typedef struct {
    Bytes source;
    Int64s ops;
    Int64sOut slots;
    BoolsOut valid;
    int64_t rows;
} Table;

/* A slot of -1 is of what is passed over; so is everything of a row of -1. */
static inline void put(const Table *table, int64_t slot, int64_t row, int64_t value) {
    if (slot >= 0 && row >= 0) AT(table->slots, slot * table->rows + row) = value;
}

static inline void put_valid(const Table *table, int64_t slot, int64_t row, bool value) {
    if (slot >= 0 && row >= 0) AT(table->valid, slot * table->rows + row) = value;
}

#endif
