/* The kernel that reads JSON by column; its reference implementation is in `fairlead_kafka/formats/json_kernel.py`, where it is said what
 * its operations are, and which texts are left to other code. */

#include "formats.h"

enum { STRUCT, TEXT, WHOLE, NUMBER, TRUTH, DAY, INSTANT, LOCAL };
/* Behind so many rows that are not taken, the rest is left if they are more than half of those seen. */
enum { PATIENCE = 64, PASSED_DEPTH_MAX = 64 };
/* Digits that 64 bits hold, whatever they are; and exponents of ten with which so many digits are a double that is neither subnormal nor
 * infinite. `powers` has a row for each exponent. */
enum { DIGITS_MAX = 19, EXPONENT_DIGITS_MAX = 4, EXPONENT_LEAST = -300, EXPONENT_MOST = 288 };
enum { HIDDEN_BIT = 52, EXPONENT_BIAS = 1023 };

static const int64_t SECOND_US = 1000000;
static const uint64_t ONES = 0x0101010101010101, HIGH_BITS = 0x8080808080808080;

typedef struct {
    Table table;
    Bytes names;
    Int64s name_offsets, powers;
    Int64sOut order, places;
    BytesOut unescaped;
    int64_t used; /* of `unescaped` */
} Reader;

typedef struct {
    uint64_t digits;
    int64_t exponent;
    bool minus;
} Number;

static int64_t read_object(Reader *reader, int64_t number, int64_t position, int64_t stop, int64_t row);

static inline uint64_t eight(Bytes bytes, int64_t position) {
    uint64_t word;
    CHECK_PIECE(bytes, position, 8);
    memcpy(&word, bytes.data + position, 8);
    return word;
}

static inline uint32_t four(Bytes bytes, int64_t position) {
    uint32_t word;
    CHECK_PIECE(bytes, position, 4);
    memcpy(&word, bytes.data + position, 4);
    return word;
}

/* Whether `size` bytes at `one` and at `other` are the same. They are few, and a call of memcmp takes longer. */
static inline bool same(Bytes source, int64_t one, Bytes names, int64_t other, int64_t size) {
    if (size < 4) {
        for (int64_t i = 0; i < size; i++)
            if (AT(source, one + i) != AT(names, other + i)) return false;
        return true;
    }
    if (size < 8) return four(source, one) == four(names, other) && four(source, one + size - 4) == four(names, other + size - 4);
    for (int64_t i = 0; i + 8 < size; i += 8)
        if (eight(source, one + i) != eight(names, other + i)) return false;
    return eight(source, one + size - 8) == eight(names, other + size - 8);
}

static inline bool is_at(Bytes source, int64_t position, int64_t stop, uint8_t byte) {
    return position < stop && AT(source, position) == byte;
}

/* Passes over a byte, or over white space; the position after it. */
static inline int64_t pass_byte(Bytes source, int64_t position, int64_t stop, uint8_t byte) {
    return position >= 0 && is_at(source, position, stop, byte) ? position + 1 : -1;
}

static inline int64_t pass_space(Bytes source, int64_t position, int64_t stop) {
    while (position < stop && AT(source, position) <= ' ') {
        uint8_t byte = AT(source, position);
        if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t') return position;
        position++;
    }
    return position;
}

static inline int64_t pass_word(Bytes source, int64_t position, int64_t stop, const char *word, int64_t size) {
    if (size > stop - position) return -1;
    CHECK_PIECE(source, position, size);
    return memcmp(source.data + position, word, (size_t)size) ? -1 : position + size;
}

/* The first byte that does not stand for itself in a text: a quotation mark, a backslash or a control character; or `stop`. */
static inline int64_t special(Bytes source, int64_t position, int64_t stop) {
    while (stop - position >= 8) {
        /* Of each byte the high bit, where it is one of them; bits above the lowest that is set may be wrong. */
        uint64_t word = eight(source, position), quote = word ^ ONES * '"', slash = word ^ ONES * '\\';
        uint64_t found = (((quote - ONES) & ~quote) | ((slash - ONES) & ~slash) | ((word - ONES * ' ') & ~word)) & HIGH_BITS;
        if (found) return position + __builtin_ctzll(found) / 8;
        position += 8;
    }
    for (; position < stop; position++) {
        uint8_t byte = AT(source, position);
        if (byte == '"' || byte == '\\' || byte < ' ') break;
    }
    return position;
}

static inline int64_t read_hex(Bytes source, int64_t position, int64_t stop, uint32_t *value) {
    if (position < 0 || stop - position < 4) return -1;
    uint32_t found = 0;
    for (int64_t i = position; i < position + 4; i++) {
        uint8_t byte = AT(source, i), letter = (uint8_t)((byte | 32) - 'a'), digit = (uint8_t)(byte - '0');
        if (digit > 9 && letter > 5) return -1;
        found = found << 4 | (uint32_t)(digit > 9 ? letter + 10 : digit);
    }
    *value = found;
    return position + 4;
}

/* A character after `\u`: four digits, or twelve characters for a pair of surrogates. One alone is no character. */
static int64_t read_character(Bytes source, int64_t position, int64_t stop, uint32_t *character) {
    uint32_t low;
    position = read_hex(source, position, stop, character);
    if (position < 0 || *character < 0xd800 || *character > 0xdfff) return position;
    if (*character > 0xdbff) return -1;
    position = read_hex(source, pass_word(source, position, stop, "\\u", 2), stop, &low);
    if (position < 0 || low < 0xdc00 || low > 0xdfff) return -1;
    *character = 0x10000 + ((*character - 0xd800) << 10) + (low - 0xdc00);
    return position;
}

/* Writes a character in UTF-8; the position after it. There is room for it: its escape was longer. */
static int64_t write_character(BytesOut out, int64_t position, uint32_t character) {
    int more = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};
    AT(out, position) = (uint8_t)(first[more] | character >> (6 * more));
    for (int i = 1; i <= more; i++) AT(out, position + i) = (uint8_t)(0x80 | (character >> (6 * (more - i)) & 0x3f));
    return position + more + 1;
}

static inline uint8_t unescaped(uint8_t byte) {
    switch (byte) {
    case '"':
    case '\\':
    case '/':
        return byte;
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return 0;
    }
}

/* As read_text, for a text with escapes: it is written to `unescaped`, whose positions are counted on from the end of the source. */
static int64_t read_escaped(Reader *reader, int64_t position, int64_t stop, int64_t *start, int64_t *size) {
    Bytes source = reader->table.source;
    BytesOut out = reader->unescaped;
    int64_t made = reader->used;
    for (;;) {
        int64_t end = special(source, position, stop);
        /* What follows a backslash takes no more room than its escape: six bytes at least for one that takes more than one. */
        if (end >= stop || end - position >= out.size - made) return -1;
        COPY(out, made, source, position, end - position);
        made += end - position;
        uint8_t byte = AT(source, end);
        position = end + 1;
        if (byte == '"') {
            *start = source.size + reader->used;
            *size = made - reader->used;
            reader->used = made;
            return position;
        }
        if (byte != '\\' || position >= stop) return -1;
        byte = AT(source, position);
        position++;
        if (byte == 'u') {
            uint32_t character = 0;
            position = read_character(source, position, stop, &character);
            if (position < 0 || out.size - made < 4) return -1;
            made = write_character(out, made, character);
        } else {
            byte = unescaped(byte);
            if (!byte) return -1;
            AT(out, made) = byte;
            made++;
        }
    }
}

/* The text after a quotation mark: where it begins and its size. The position after its end, or -1. */
static inline int64_t read_text(Reader *reader, int64_t position, int64_t stop, int64_t *start, int64_t *size) {
    int64_t end = special(reader->table.source, position, stop);
    if (end >= stop) return -1;
    if (AT(reader->table.source, end) != '"') return read_escaped(reader, position, stop, start, size);
    *start = position;
    *size = end - position;
    return end + 1;
}

/* Appends decimal digits to a number; the position after them. More than DIGITS_MAX give any number. */
static inline int64_t read_digits(Bytes source, int64_t position, int64_t stop, uint64_t *value) {
    uint64_t found = *value;
    while (stop - position >= 8) {
        uint64_t word = eight(source, position);
        if (((word & ONES * 0xf0) | ((word + ONES * 6) & ONES * 0xf0) >> 4) != ONES * 0x33) break;
        /* Pairs of digits, then fours, then all eight. */
        word = (word & ONES * 0x0f) * 2561 >> 8;
        word = (word & 0x00ff00ff00ff00ff) * 6553601 >> 16;
        word = (word & 0x0000ffff0000ffff) * 42949672960001 >> 32;
        found = found * 100000000 + word;
        position += 8;
    }
    for (; position < stop; position++) {
        uint8_t digit = (uint8_t)(AT(source, position) - '0');
        if (digit > 9) break;
        found = found * 10 + digit;
    }
    *value = found;
    return position;
}

/* Digits of a whole number, without zeros before them; the position after them, or -1. */
static inline int64_t read_natural(Bytes source, int64_t position, int64_t stop, uint64_t *value) {
    int64_t start = position;
    position = read_digits(source, position, stop, value);
    return position == start || (position > start + 1 && AT(source, start) == '0') ? -1 : position;
}

static inline int64_t read_whole(Bytes source, int64_t position, int64_t stop, int64_t bits, int64_t *value) {
    bool minus = is_at(source, position, stop, '-');
    uint64_t digits = 0;
    int64_t start = position + minus;
    position = read_natural(source, start, stop, &digits);
    if (position < 0 || position - start > DIGITS_MAX) return -1;
    if (digits > ((uint64_t)INT64_MAX >> (64 - bits)) + minus) return -1;
    *value = (int64_t)(minus ? 0 - digits : digits);
    return position;
}

static inline int64_t read_number(Bytes source, int64_t position, int64_t stop, Number *number) {
    number->minus = is_at(source, position, stop, '-');
    number->digits = 0, number->exponent = 0;
    int64_t start = position + number->minus;
    position = read_natural(source, start, stop, &number->digits);
    if (position < 0) return -1;
    int64_t count = position - start;
    if (is_at(source, position, stop, '.')) {
        int64_t fraction = position + 1;
        position = read_digits(source, fraction, stop, &number->digits);
        if (position == fraction) return -1;
        number->exponent = fraction - position;
        count += position - fraction;
    }
    for (int64_t at = start; count > DIGITS_MAX; at++) { /* Zeros before all other digits do not count. */
        if (AT(source, at) != '0' && AT(source, at) != '.') return -1;
        count -= AT(source, at) == '0';
    }
    if (position < stop && (AT(source, position) | 32) == 'e') {
        position++;
        bool below = is_at(source, position, stop, '-');
        position += below || is_at(source, position, stop, '+');
        uint64_t exponent = 0;
        start = position;
        position = read_digits(source, position, stop, &exponent);
        if (position == start || position - start > EXPONENT_DIGITS_MAX) return -1;
        number->exponent += below ? -(int64_t)exponent : (int64_t)exponent;
    }
    return number->exponent < EXPONENT_LEAST || number->exponent > EXPONENT_MOST ? -1 : position;
}

/* The double that is nearest, as its bits: D. Lemire, "Number Parsing at a Gigabyte per Second" (2021), with the proof by N. Mushtak and
 * him, "Fast Number Parsing Without Fallback" (2023), that two products are always enough. `powers` are 128 bits of each power of five. */
static inline int64_t nearest_double(Int64s powers, Number number) {
    uint64_t sign = (uint64_t)number.minus << 63;
    if (!number.digits) return (int64_t)sign;
    int zeros = __builtin_clzll(number.digits);
    uint64_t digits = number.digits << zeros;
    int64_t row = 2 * (number.exponent - EXPONENT_LEAST);
    unsigned __int128 product = (unsigned __int128)digits * (uint64_t)AT(powers, row);
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    if ((high & 0x1ff) == 0x1ff) { /* What lies below may carry into the bits that count. */
        uint64_t below = (uint64_t)((unsigned __int128)digits * (uint64_t)AT(powers, row + 1) >> 64);
        low += below;
        high += low < below;
    }
    int top = (int)(high >> 63), shift = top + 9;
    uint64_t mantissa = high >> shift;
    /* 217706 / 2^16: the binary digits of a 10. */
    int64_t exponent = ((217706 * number.exponent) >> 16) + 63 + top - zeros + EXPONENT_BIAS;
    /* In the middle between two doubles, where only small powers of five can lead: to the even one. */
    bool may_be_middle = low <= 1 && number.exponent >= -4 && number.exponent <= 23;
    if (may_be_middle && (mantissa & 3) == 1 && mantissa << shift == high) mantissa &= ~(uint64_t)1;
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if (mantissa >> (HIDDEN_BIT + 1)) mantissa >>= 1, exponent++;
    return (int64_t)(sign | (uint64_t)exponent << HIDDEN_BIT | (mantissa & (((uint64_t)1 << HIDDEN_BIT) - 1)));
}

/* Two digits, or -1. */
static inline int64_t pair(Bytes source, int64_t position) {
    uint8_t tens = (uint8_t)(AT(source, position) - '0'), ones = (uint8_t)(AT(source, position + 1) - '0');
    return tens > 9 || ones > 9 ? -1 : tens * 10 + ones;
}

/* `YYYY-MM-DD` as days since 1970; the position after it, or -1. */
static inline int64_t read_day(Bytes source, int64_t position, int64_t stop, int64_t *day) {
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (position < 0 || stop - position < 10 || AT(source, position + 4) != '-' || AT(source, position + 7) != '-') return -1;
    int64_t century = pair(source, position), year = pair(source, position + 2);
    int64_t month = pair(source, position + 5), of_month = pair(source, position + 8);
    if (century < 0 || year < 0 || month < 1 || month > 12 || of_month < 1) return -1;
    year += century * 100;
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (year < 1 || of_month > days[month - 1] + (leap && month == 2)) return -1;
    /* Years that begin in March end with the day that not all have. */
    int64_t shifted = year - (month < 3), since_march = (month + 9) % 12;
    *day = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + (153 * since_march + 2) / 5 + of_month - 1 - 719468;
    return position + 10;
}

/* `Z`, `+hh:mm`, `-hh:mm` or nothing: seconds before UTC, and the position after it, or -1. */
static inline int64_t read_zone(Bytes source, int64_t position, int64_t stop, int64_t *seconds) {
    if (position >= stop) return -1;
    uint8_t byte = AT(source, position);
    if (byte == 'Z') return position + 1;
    if (byte != '+' && byte != '-') return position;
    if (stop - position < 6 || AT(source, position + 3) != ':') return -1;
    int64_t hours = pair(source, position + 1), minutes = pair(source, position + 4);
    if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return -1;
    *seconds = (hours * 60 + minutes) * (byte == '-' ? -60 : 60);
    return position + 6;
}

/* `YYYY-MM-DDThh:mm:ss`, or with a space, with any fraction of a second, as microseconds since 1970; the position after it, or -1. */
static inline int64_t read_instant(Bytes source, int64_t position, int64_t stop, bool zoned, int64_t *instant) {
    int64_t day = 0, fraction = 0, zone = 0;
    position = read_day(source, position, stop, &day);
    if (position < 0 || stop - position < 9 || (AT(source, position) != 'T' && AT(source, position) != ' ')) return -1;
    if (AT(source, position + 3) != ':' || AT(source, position + 6) != ':') return -1;
    int64_t hour = pair(source, position + 1), minute = pair(source, position + 4), second = pair(source, position + 7);
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return -1;
    position += 9;
    if (is_at(source, position, stop, '.')) {
        int64_t unit = SECOND_US / 10, start = ++position;
        for (; position < stop && (uint8_t)(AT(source, position) - '0') <= 9; position++, unit /= 10)
            fraction += unit * (AT(source, position) - '0');
        if (position == start) return -1;
    }
    if (zoned) position = read_zone(source, position, stop, &zone);
    *instant = (((day * 24 + hour) * 60 + minute) * 60 + second - zone) * SECOND_US + fraction;
    return position;
}

/* The value of an operation's field, into its slots; the position after it, or -1. */
static inline int64_t read_value(Reader *reader, int64_t number, int64_t position, int64_t stop, int64_t row) {
    const Table *table = &reader->table;
    Bytes source = table->source;
    Op op = op_at(table->ops, number);
    int64_t value = 0, size = 0;
    Number found;
    if (position >= stop) return -1;
    uint8_t byte = AT(source, position);
    /* Where a name is there twice the last one counts. Of a struct the first would leave fields behind: not here. */
    if (op.kind == STRUCT && AT(table->valid, op.valid * table->rows + row)) return -1;
    if (byte == 'n') {
        put_valid(table, op.valid, row, false);
        return pass_word(source, position, stop, "null", 4);
    }
    put_valid(table, op.valid, row, true);
    switch (op.kind) {
    case STRUCT:
        return byte == '{' ? read_object(reader, number, position + 1, stop, row) : -1;
    case TEXT:
        if (byte != '"') return -1;
        position = read_text(reader, position + 1, stop, &value, &size);
        if (position >= 0) put(table, op.slot + 1, row, size);
        break;
    case WHOLE:
        position = read_whole(source, position, stop, op.argument, &value);
        break;
    case NUMBER:
        position = read_number(source, position, stop, &found);
        if (position >= 0) value = nearest_double(reader->powers, found);
        break;
    case TRUTH:
        value = byte == 't';
        position = value ? pass_word(source, position, stop, "true", 4) : pass_word(source, position, stop, "false", 5);
        break;
    case DAY:
        if (byte == '"') position = pass_byte(source, read_day(source, position + 1, stop, &value), stop, '"');
        else return -1;
        break;
    case INSTANT:
    case LOCAL:
        if (byte == '"') position = pass_byte(source, read_instant(source, position + 1, stop, op.kind == INSTANT, &value), stop, '"');
        else return -1;
        break;
    default:
        return -1;
    }
    if (position >= 0) put(table, op.slot, row, value);
    return position;
}

/* A name and its colon in what is passed over; the position of the value, or -1. */
static inline int64_t pass_name(Reader *reader, int64_t position, int64_t stop) {
    Bytes source = reader->table.source;
    int64_t start, size;
    if (!is_at(source, position, stop, '"')) return -1;
    position = read_text(reader, position + 1, stop, &start, &size);
    if (position < 0) return -1;
    position = pass_byte(source, pass_space(source, position, stop), stop, ':');
    return position < 0 ? -1 : pass_space(source, position, stop);
}

/* A value that the schema lacks, which must be JSON all the same; the position after it, or -1. */
static int64_t pass_value(Reader *reader, int64_t position, int64_t stop) {
    Bytes source = reader->table.source;
    uint64_t objects = 0; /* A bit for each thing that is open, 1 for an object; the last one lowest. */
    int64_t start, size;
    Number number;
    for (int depth = 0;;) {
        if (position < 0 || position >= stop) return -1;
        uint8_t byte = AT(source, position);
        if (byte == '{' || byte == '[') {
            if (depth == PASSED_DEPTH_MAX) return -1;
            depth++;
            objects = objects << 1 | (byte == '{');
            position = pass_space(source, position + 1, stop);
            if (!is_at(source, position, stop, byte == '{' ? '}' : ']')) {
                if (byte == '{') position = pass_name(reader, position, stop);
                continue;
            }
        } else if (byte == '"')
            position = read_text(reader, position + 1, stop, &start, &size);
        else if (byte == 't' || byte == 'n')
            position = pass_word(source, position, stop, byte == 't' ? "true" : "null", 4);
        else if (byte == 'f')
            position = pass_word(source, position, stop, "false", 5);
        else
            position = read_number(source, position, stop, &number);
        /* What ends here ends others, or is followed by a comma. */
        for (;;) {
            if (position < 0 || !depth) return position;
            position = pass_space(source, position, stop);
            if (position >= stop) return -1;
            byte = AT(source, position);
            position++;
            if (byte == ',') break;
            if (byte != (objects & 1 ? '}' : ']')) return -1;
            objects >>= 1;
            depth--;
        }
        position = pass_space(source, position, stop);
        if (objects & 1) position = pass_name(reader, position, stop);
    }
}

static inline int64_t name_size(const Reader *reader, int64_t number) {
    return AT(reader->name_offsets, number + 1) - AT(reader->name_offsets, number);
}

/* Names by their hashes: `places` is a table of operations, twice as many as there are and a power of two, with 0 for none. */
static inline uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 32;
}

static uint64_t hash_of(Bytes source, int64_t position, int64_t size, int64_t struct_fields) {
    uint64_t hash = mixed((uint64_t)size, (uint64_t)struct_fields);
    if (size < 4) {
        for (int64_t i = 0; i < size; i++) hash = mixed(hash, AT(source, position + i));
        return hash;
    }
    if (size < 8) return mixed(hash, (uint64_t)four(source, position) << 32 | four(source, position + size - 4));
    for (int64_t i = 0; i + 8 < size; i += 8) hash = mixed(hash, eight(source, position + i));
    return mixed(hash, eight(source, position + size - 8));
}

static void place_names(Reader *reader) {
    int64_t count = reader->table.ops.size / OP_FIELDS;
    uint64_t mask = (uint64_t)reader->places.size - 1;
    for (int64_t number = 0; number < count; number++) {
        Op object = op_at(reader->table.ops, number);
        if (object.kind != STRUCT) continue;
        for (int64_t field = object.argument; field < object.argument + object.skip; field++) {
            uint64_t at = hash_of(reader->names, AT(reader->name_offsets, field), name_size(reader, field) - 1, object.argument);
            while (AT(reader->places, (int64_t)(at & mask))) at++;
            AT(reader->places, (int64_t)(at & mask)) = field;
        }
    }
}

/* The field of a struct with the name of `size` bytes, quotation marks included, at `position`; -1 if there is none. */
static int64_t find_name(const Reader *reader, Op object, int64_t position, int64_t size) {
    Bytes source = reader->table.source;
    uint64_t mask = (uint64_t)reader->places.size - 1;
    for (uint64_t at = hash_of(source, position, size, object.argument);; at++) {
        int64_t found = AT(reader->places, (int64_t)(at & mask));
        if (!found) return -1;
        bool fits = found >= object.argument && found < object.argument + object.skip && name_size(reader, found) == size + 1;
        if (fits && same(source, position, reader->names, AT(reader->name_offsets, found), size)) return found;
    }
}

/* The fields after a `{`, by the operations of a struct; the position after its `}`, or -1. */
static int64_t read_object(Reader *reader, int64_t number, int64_t position, int64_t stop, int64_t row) {
    Bytes source = reader->table.source;
    Op object = op_at(reader->table.ops, number);
    int64_t before = reader->table.ops.size / OP_FIELDS + number; /* Where `order` says what comes first. */
    position = pass_space(source, position, stop);
    if (is_at(source, position, stop, '}')) return position + 1;
    for (;;) {
        int64_t found = AT(reader->order, before), size = name_size(reader, found);
        if (size <= stop - position && same(source, position, reader->names, AT(reader->name_offsets, found), size))
            position += size;
        else {
            if (!is_at(source, position, stop, '"')) return -1;
            int64_t end = special(source, position + 1, stop);
            if (!is_at(source, end, stop, '"')) return -1; /* A name with an escape may be any: not here. */
            found = find_name(reader, object, position, end + 1 - position);
            if (found >= 0) AT(reader->order, before) = found;
            position = pass_byte(source, pass_space(source, end + 1, stop), stop, ':');
            if (position < 0) return -1;
        }
        position = pass_space(source, position, stop);
        if (found < 0) {
            int64_t used = reader->used;
            position = pass_value(reader, position, stop);
            reader->used = used; /* What was passed over is no text of a field. */
        } else {
            position = read_value(reader, found, position, stop, row);
            before = found;
        }
        if (position < 0) return -1;
        position = pass_space(source, position, stop);
        if (position >= stop) return -1;
        uint8_t byte = AT(source, position);
        position++;
        if (byte == '}') return position;
        if (byte != ',') return -1;
        position = pass_space(source, position, stop);
    }
}

static bool read_row(Reader *reader, int64_t position, int64_t stop, int64_t row) {
    Bytes source = reader->table.source;
    if (position < 0 || stop < position || stop > source.size) return false;
    position = pass_byte(source, pass_space(source, position, stop), stop, '{');
    if (position >= 0) position = read_object(reader, 0, position, stop, row);
    return position >= 0 && pass_space(source, position, stop) == stop;
}

Taken decode_json(
    Bytes source, Int64s starts, Int64s ends, Bools given, Int64s ops, Bytes names, Int64s name_offsets, Int64s powers, Int64sOut order,
    Int64sOut places, Int64sOut slots, BoolsOut valid, BoolsOut faults, BytesOut unescaped
) {
    int64_t rows = starts.size, seen = 0, wrong = 0;
    Reader reader = {{source, ops, slots, valid, rows}, names, name_offsets, powers, order, places, unescaped, 0};
    place_names(&reader);
    for (int64_t row = 0; row < rows; row++) {
        if (!AT(given, row)) continue;
        bool tired = wrong > PATIENCE && wrong * 2 > seen;
        bool fault = tired || !read_row(&reader, AT(starts, row), AT(ends, row), row);
        AT(faults, row) = fault;
        wrong += fault;
        seen++;
    }
    return (Taken){wrong, reader.used};
}
