/* The kernels as functions of a Python module, `fairlead_kafka.base._native`: arrays by the buffer protocol, numbers as ints. And the types
 * of intake.h.
 *
 * Each function reads its arguments in order, and gives up at the first that is none of what it takes (TypeError). What is larger than
 * RELEASE_BYTES is worked on without the interpreter's lock; for less, handing it over and taking it back could cost a wait of
 * milliseconds, where the work takes microseconds.
 */

#include "intake.h"
#include "kernels.h"
#include "python_abi.h"

#ifdef CHECKED
#include <setjmp.h>
#endif

enum { ARRAYS_MAX = 20, RELEASE_BYTES = 64 * 1024 };

typedef struct {
    PyObject *const *arguments;
    Py_ssize_t count, taken;
    bool failed;
    int views;
    int64_t bytes;
    Py_buffer view[ARRAYS_MAX];
    PyThreadState *thread;
} Call;

static PyObject *next_argument(Call *call) {
    if (call->failed) return NULL;
    if (call->taken == call->count) {
        PyErr_Format(PyExc_TypeError, "too few arguments: %zd", call->count);
        call->failed = true;
        return NULL;
    }
    return call->arguments[call->taken++];
}

static int64_t integer(Call *call) {
    PyObject *argument = next_argument(call);
    if (!argument) return 0;
    int64_t number = PyLong_AsLongLong(argument);
    if (number == -1 && PyErr_Occurred()) call->failed = true;
    return number;
}

/* The items of an array, contiguous, of so many bytes each. */
static Py_buffer *array(Call *call, Py_ssize_t item_bytes, int flags) {
    static Py_buffer none;
    PyObject *argument = next_argument(call);
    if (!argument) return &none;
    Py_buffer *view = &call->view[call->views];
    if (PyObject_GetBuffer(argument, view, PyBUF_C_CONTIGUOUS | flags) < 0) {
        call->failed = true;
        return &none;
    }
    call->views++;
    call->bytes += view->len;
    if (view->itemsize != item_bytes) {
        PyErr_Format(PyExc_TypeError, "argument %zd has items of %zd bytes, not %zd", call->taken, view->itemsize, item_bytes);
        call->failed = true;
    }
    return view;
}

#define TAKES(name, type, flags) \
    static type take_##name(Call *call) { \
        Py_buffer *view = array(call, sizeof(*((type *)0)->data), flags); \
        return (type){view->buf, view->len / (Py_ssize_t)sizeof(*((type *)0)->data)}; \
    }

TAKES(bytes, Bytes, 0)
TAKES(bools, Bools, 0)
TAKES(int32s, Int32s, 0)
TAKES(int64s, Int64s, 0)
TAKES(bytes_out, BytesOut, PyBUF_WRITABLE)
TAKES(bools_out, BoolsOut, PyBUF_WRITABLE)
TAKES(int32s_out, Int32sOut, PyBUF_WRITABLE)
TAKES(int64s_out, Int64sOut, PyBUF_WRITABLE)

static Columns take_columns(Call *call) {
    Columns columns;
    columns.key_data = take_bytes(call);
    columns.key_offsets = take_int64s(call);
    columns.key_valid = take_bools(call);
    columns.value_data = take_bytes(call);
    columns.value_offsets = take_int64s(call);
    columns.value_valid = take_bools(call);
    columns.header_offsets = take_int64s(call);
    columns.header_key_data = take_bytes(call);
    columns.header_key_offsets = take_int64s(call);
    columns.header_value_data = take_bytes(call);
    columns.header_value_offsets = take_int64s(call);
    columns.header_value_valid = take_bools(call);
    return columns;
}

#ifdef CHECKED
static _Thread_local struct {
    jmp_buf leave;
    const char *file;
    int line;
    int64_t index, size;
} bounds_error;

_Noreturn void out_of_bounds(const char *file, int line, int64_t index, int64_t size) {
    bounds_error.file = file, bounds_error.line = line, bounds_error.index = index, bounds_error.size = size;
    longjmp(bounds_error.leave, 1);
}
#define WORK(call) (ready(call) && (setjmp(bounds_error.leave) ? left_bounds(call) : begin(call)))
static bool left_bounds(Call *call) {
    if (call->thread) PyEval_RestoreThread(call->thread);
    call->thread = NULL;
    PyErr_Format(
        PyExc_IndexError, "%s:%d: index %lld of %lld", bounds_error.file, bounds_error.line, (long long)bounds_error.index,
        (long long)bounds_error.size
    );
    call->failed = true;
    return false;
}
#else
#define WORK(call) (ready(call) && begin(call))
#endif

/* True if all arguments were taken, and were what they should be. */
static bool ready(Call *call) {
    if (!call->failed && call->taken < call->count) {
        PyErr_Format(PyExc_TypeError, "too many arguments: %zd, not %zd", call->count, call->taken);
        call->failed = true;
    }
    return !call->failed;
}

static bool begin(Call *call) {
    call->thread = call->bytes > RELEASE_BYTES ? PyEval_SaveThread() : NULL;
    return true;
}

/* Ends a call: gives a tuple of `count` numbers, one number as it is, or None for no number; NULL if the call failed. */
static PyObject *end(Call *call, const int64_t *numbers, int count) {
    if (call->thread) PyEval_RestoreThread(call->thread);
    while (call->views) PyBuffer_Release(&call->view[--call->views]);
    if (call->failed) return NULL;
    if (count == 1) return PyLong_FromLongLong(numbers[0]);
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++) PyTuple_SetItem(tuple, i, PyLong_FromLongLong(numbers[i]));
    return tuple;
}

#define FUNCTION(name) static PyObject *call_##name(PyObject *module, PyObject *const *arguments, Py_ssize_t argument_count)
#define CALL Call call = {.arguments = arguments, .count = argument_count}; (void)module
#define END(...) \
    do { \
        const int64_t numbers[] = {__VA_ARGS__}; \
        return end(&call, numbers, sizeof numbers / sizeof *numbers); \
    } while (0)

FUNCTION(check_records) {
    CALL;
    Bytes source = take_bytes(&call);
    int64_t start = integer(&call), stop = integer(&call), count = integer(&call);
    Checked found = {0};
    if (WORK(&call)) found = check_records(source, start, stop, count);
    END(found.fault, found.position);
}

FUNCTION(whole_records) {
    CALL;
    Bytes source = take_bytes(&call);
    int64_t stop = integer(&call), most = integer(&call);
    Whole found = {0};
    if (WORK(&call)) found = whole_records(source, stop, most);
    END(found.count, found.position, found.last_delta, found.fault);
}

FUNCTION(keep_records) {
    CALL;
    Bytes source = take_bytes(&call);
    int64_t start = integer(&call), stop = integer(&call);
    Bools keep = take_bools(&call);
    BytesOut target = take_bytes_out(&call);
    Checked found = {0};
    if (WORK(&call)) found = keep_records(source, start, stop, keep, target);
    END(found.fault, found.position);
}

FUNCTION(scan_batches) {
    CALL;
    Bytes source = take_bytes(&call);
    int64_t position = integer(&call);
    Int64sOut rows = take_int64s_out(&call);
    Scanned found = {0};
    if (WORK(&call)) found = scan_batches(source, position, rows);
    END(found.filled, found.fault, found.position);
}

FUNCTION(decode_records) {
    CALL;
    Bytes source = take_bytes(&call);
    Int64sOut rows = take_int64s_out(&call);
    int64_t first = integer(&call), last = integer(&call), inflated_size = integer(&call), from_offset = integer(&call);
    Decoded out;
    out.offsets = take_int64s_out(&call);
    out.timestamps = take_int64s_out(&call);
    out.timestamp_types = take_int32s_out(&call);
    out.key_offsets = take_int64s_out(&call);
    out.key_valid = take_bools_out(&call);
    out.key_data = take_bytes_out(&call);
    out.value_offsets = take_int64s_out(&call);
    out.value_valid = take_bools_out(&call);
    out.value_data = take_bytes_out(&call);
    out.header_offsets = take_int64s_out(&call);
    out.header_starts = take_int64s_out(&call);
    out.cursors = take_int64s_out(&call);
    Checked found = {0};
    if (WORK(&call)) found = decode_records(source, rows, first, last, inflated_size, from_offset, out);
    END(found.fault, found.position);
}

FUNCTION(decode_headers) {
    CALL;
    Bytes source = take_bytes(&call);
    int64_t first = integer(&call), last = integer(&call);
    Int64s header_offsets = take_int64s(&call), header_starts = take_int64s(&call);
    Int64sOut key_offsets = take_int64s_out(&call);
    BytesOut key_data = take_bytes_out(&call);
    Int64sOut value_offsets = take_int64s_out(&call);
    BoolsOut value_valid = take_bools_out(&call);
    BytesOut value_data = take_bytes_out(&call);
    if (WORK(&call))
        decode_headers(
            source, first, last, header_offsets, header_starts, key_offsets, key_data, value_offsets, value_valid, value_data
        );
    END(0);
}

FUNCTION(measure_records) {
    CALL;
    Columns columns = take_columns(&call);
    Int64sOut sizes = take_int64s_out(&call);
    if (WORK(&call)) measure_records(columns, sizes);
    END(0);
}

FUNCTION(encode_batches) {
    CALL;
    Columns columns = take_columns(&call);
    Int64s timestamps = take_int64s(&call), order = take_int64s(&call), bounds = take_int64s(&call), sequences = take_int64s(&call);
    BytesOut out = take_bytes_out(&call);
    Int64sOut table = take_int64s_out(&call);
    int64_t position = integer(&call);
    Stamp stamp;
    stamp.header_size = integer(&call);
    stamp.create_time = integer(&call);
    stamp.base_timestamp = integer(&call);
    stamp.first_delta = integer(&call);
    stamp.attributes = integer(&call);
    stamp.producer_id = integer(&call);
    stamp.producer_epoch = integer(&call);
    stamp.base_offset = integer(&call);
    stamp.leader_epoch = integer(&call);
    if (WORK(&call)) position = encode_batches(columns, timestamps, order, bounds, sequences, out, table, position, stamp);
    END(position);
}

FUNCTION(cut_by_size) {
    CALL;
    Int64s sizes = take_int64s(&call), order = take_int64s(&call);
    int64_t start = integer(&call), stop = integer(&call), room = integer(&call), limit = integer(&call), count = 0;
    Int64sOut cuts = take_int64s_out(&call);
    if (WORK(&call)) count = cut_by_size(sizes, order, start, stop, room, limit, cuts);
    END(count);
}

FUNCTION(hash_keys) {
    CALL;
    Bytes data = take_bytes(&call);
    Int64s offsets = take_int64s(&call);
    Int32sOut hashes = take_int32s_out(&call);
    if (WORK(&call)) hash_keys(data, offsets, hashes);
    END(0);
}

FUNCTION(partition_keys) {
    CALL;
    Bytes data = take_bytes(&call);
    Int64s offsets = take_int64s(&call);
    Bools valid = take_bools(&call);
    int64_t partition_count = integer(&call);
    Int32sOut partitions = take_int32s_out(&call);
    if (WORK(&call)) partition_keys(data, offsets, valid, partition_count, partitions);
    END(0);
}

FUNCTION(sort_by_partition) {
    CALL;
    Int32s partitions = take_int32s(&call);
    Int64sOut order = take_int64s_out(&call), bounds = take_int64s_out(&call);
    if (WORK(&call)) sort_by_partition(partitions, order, bounds);
    END(0);
}

FUNCTION(decode_avro) {
    CALL;
    Bytes source = take_bytes(&call);
    Int64s starts = take_int64s(&call), ends = take_int64s(&call), counts = take_int64s(&call);
    int64_t whole = integer(&call);
    Int64s ops = take_int64s(&call);
    int64_t rows = integer(&call), wrong = 0;
    Int64sOut slots = take_int64s_out(&call);
    BoolsOut valid = take_bools_out(&call), faults = take_bools_out(&call);
    if (WORK(&call)) wrong = decode_avro(source, starts, ends, counts, whole, ops, rows, slots, valid, faults);
    END(wrong);
}

FUNCTION(decode_protobuf) {
    CALL;
    Bytes source = take_bytes(&call);
    Int64s starts = take_int64s(&call), ends = take_int64s(&call);
    Bools given = take_bools(&call);
    Int64s ops = take_int64s(&call);
    Int64sOut slots = take_int64s_out(&call);
    BoolsOut valid = take_bools_out(&call), faults = take_bools_out(&call);
    int64_t wrong = 0;
    if (WORK(&call)) wrong = decode_protobuf(source, starts, ends, given, ops, slots, valid, faults);
    END(wrong);
}

#define ENCODES(name) \
    FUNCTION(name) { \
        CALL; \
        Int64s ops = take_int64s(&call); \
        int64_t rows = integer(&call), position = 0; \
        Int64s slots = take_int64s(&call); \
        Bools valid = take_bools(&call); \
        Bytes source = take_bytes(&call), prefix = take_bytes(&call); \
        Bools given = take_bools(&call); \
        BytesOut out = take_bytes_out(&call); \
        Int64sOut offsets = take_int64s_out(&call); \
        if (WORK(&call)) position = name(ops, rows, slots, valid, source, prefix, given, out, offsets); \
        END(position); \
    }

ENCODES(encode_avro)
ENCODES(encode_protobuf)

FUNCTION(decode_json) {
    CALL;
    Bytes source = take_bytes(&call);
    Int64s starts = take_int64s(&call), ends = take_int64s(&call);
    Bools given = take_bools(&call);
    Int64s ops = take_int64s(&call);
    Bytes names = take_bytes(&call);
    Int64s name_offsets = take_int64s(&call), powers = take_int64s(&call);
    Int64sOut order = take_int64s_out(&call), places = take_int64s_out(&call), slots = take_int64s_out(&call);
    BoolsOut valid = take_bools_out(&call), faults = take_bools_out(&call);
    BytesOut unescaped = take_bytes_out(&call);
    Taken taken = {0};
    if (WORK(&call))
        taken = decode_json(
            source, starts, ends, given, ops, names, name_offsets, powers, order, places, slots, valid, faults, unescaped
        );
    END(taken.wrong, taken.unescaped);
}

FUNCTION(gather_pieces) {
    CALL;
    Bytes source = take_bytes(&call);
    Int64s starts = take_int64s(&call), sizes = take_int64s(&call);
    BytesOut out = take_bytes_out(&call);
    int64_t position = 0;
    if (WORK(&call)) position = gather_pieces(source, starts, sizes, out);
    END(position);
}

/* The one function that gives Python's objects: no work without the lock, and nothing to be told apart in kernels.h. */
FUNCTION(list_items) {
    CALL;
    Bytes data = take_bytes(&call);
    Int64s offsets = take_int64s(&call);
    Bools valid = take_bools(&call);
    int64_t start = integer(&call), stop = integer(&call);
    PyObject *list = NULL;
    if (ready(&call)) {
        if (start < 0 || stop < start || stop >= offsets.size || (valid.size && stop > valid.size))
            PyErr_Format(PyExc_IndexError, "items %lld to %lld", (long long)start, (long long)stop);
        else
            list = PyList_New((Py_ssize_t)(stop - start));
    }
    for (int64_t item = start; list && item < stop; item++) {
        int64_t from = offsets.data[item], to = offsets.data[item + 1];
        PyObject *made = NULL;
        if (valid.size && !valid.data[item]) {
            made = &_Py_NoneStruct;
            Py_IncRef(made);
        } else if (from < 0 || to < from || to > data.size)
            PyErr_Format(PyExc_ValueError, "item %lld is none of the data", (long long)item);
        else
            made = PyBytes_FromStringAndSize((const char *)data.data + from, (Py_ssize_t)(to - from));
        if (!made) {
            Py_DecRef(list);
            list = NULL;
        } else
            PyList_SetItem(list, (Py_ssize_t)(item - start), made);
    }
    while (call.views) PyBuffer_Release(&call.view[--call.views]);
    return list;
}

#define ROW(name) {#name, call_##name, METH_FASTCALL, NULL}

static PyMethodDef METHODS[] = {
    ROW(check_records), ROW(whole_records), ROW(keep_records),   ROW(scan_batches), ROW(decode_records), ROW(decode_headers),
    ROW(measure_records), ROW(encode_batches), ROW(cut_by_size), ROW(hash_keys),    ROW(partition_keys), ROW(sort_by_partition),
    ROW(list_items),    ROW(decode_avro),    ROW(encode_avro),   ROW(decode_protobuf), ROW(encode_protobuf), ROW(gather_pieces),
    ROW(decode_json),
    {0},
};

static int add_types(PyObject *module) { return add_record_buffer(module) && add_single_send(module) ? 0 : -1; }

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, (void *)add_types}, {0}};

static PyModuleDef MODULE = {.name = "fairlead_kafka.base._native", .methods = METHODS, .slots = SLOTS};

EXPORTED PyObject *PyInit__native(void);
EXPORTED PyObject *PyInit__native(void) { return PyModuleDef_Init(&MODULE); }
