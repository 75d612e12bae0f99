/* Kernels that hash keys and group records; their reference implementations are in `fairlead_kafka/partitioning`. */

#include "kernels.h"

static const uint32_t SEED = 0x9747B28C, MULTIPLIER = 0x5BD1E995;

/* Kafka's murmur2 (`org.apache.kafka.common.utils.Utils.murmur2`), as unsigned. */
static inline uint32_t murmur2(Bytes data, int64_t start, int64_t stop) {
    CHECK_PIECE(data, start, stop - start);
    const uint8_t *at = data.data + start;
    int64_t left = stop - start;
    uint32_t state = SEED ^ (uint32_t)left;
    for (; left >= 4; at += 4, left -= 4) {
        uint32_t word = ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24) * MULTIPLIER;
        state = (state * MULTIPLIER) ^ ((word ^ word >> 24) * MULTIPLIER);
    }
    if (left > 0) {
        if (left > 2) state ^= (uint32_t)at[2] << 16;
        if (left > 1) state ^= (uint32_t)at[1] << 8;
        state = (state ^ at[0]) * MULTIPLIER;
    }
    state = (state ^ state >> 13) * MULTIPLIER;
    return state ^ state >> 15;
}

/* hashes[i] is the hash of data[offsets[i]:offsets[i + 1]]; hashes has n items, offsets n + 1. */
void hash_keys(Bytes data, Int64s offsets, Int32sOut hashes) {
    for (int64_t i = 0; i < hashes.size; i++) AT(hashes, i) = (int32_t)murmur2(data, AT(offsets, i), AT(offsets, i + 1));
}

/* partitions[i] is the partition of key i, -1 if valid[i] is false; an empty `valid` means that no key is null. */
void partition_keys(Bytes data, Int64s offsets, Bools valid, int64_t partition_count, Int32sOut partitions) {
    for (int64_t i = 0; i < partitions.size; i++) {
        if (valid.size && !AT(valid, i)) {
            AT(partitions, i) = -1;
        } else {
            int64_t positive = murmur2(data, AT(offsets, i), AT(offsets, i + 1)) & 0x7FFFFFFF;
            AT(partitions, i) = (int32_t)(positive % partition_count);
        }
    }
}

/* Counting sort, stable: fills `order` (n) and `bounds` (count + 1), which must be zero; partitions (n) must be in 0 to count - 1. */
void sort_by_partition(Int32s partitions, Int64sOut order, Int64sOut bounds) {
    for (int64_t i = 0; i < partitions.size; i++) AT(bounds, (int64_t)AT(partitions, i) + 1)++;
    for (int64_t i = 1; i < bounds.size; i++) AT(bounds, i) += AT(bounds, i - 1);
    /* bounds[p] serves as the next free place of p and so ends as bounds[p + 1]; shifting it back restores it. */
    for (int64_t i = 0; i < partitions.size; i++) AT(order, AT(bounds, AT(partitions, i))++) = i;
    for (int64_t i = bounds.size - 1; i > 0; i--) AT(bounds, i) = AT(bounds, i - 1);
    AT(bounds, 0) = 0;
}
