/* ByteCounter and RecordBuffer: see intake.h. */

#include <string.h>

#include "intake.h"

enum { FIRST_ROWS = 4, FIRST_BYTES = 128, OBJECTS = 3 };

PyTypeObject *byte_counter_type, *record_buffer_type;

/* ByteCounter */


static bool one_number(PyObject *const *arguments, Py_ssize_t count, long long *number) {
    if (count != 1) {
        PyErr_Format(PyExc_TypeError, "one number, not %zd", count);
        return false;
    }
    *number = PyLong_AsLongLong(arguments[0]);
    return !(*number == -1 && PyErr_Occurred());
}

static PyObject *counter_take(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    ByteCounter *counter = (ByteCounter *)self;
    long long size;
    if (!one_number(arguments, count, &size)) return NULL;
    bool fits = size <= counter->free_bytes;
    if (fits) counter->free_bytes -= size;
    return PyBool_FromLong(fits);
}

static PyObject *counter_give(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    long long size;
    if (!one_number(arguments, count, &size)) return NULL;
    ((ByteCounter *)self)->free_bytes += size;
    return referred(&_Py_NoneStruct);
}

static PyMethodDef COUNTER_METHODS[] = {{"take", counter_take, METH_FASTCALL, NULL}, {"give", counter_give, METH_FASTCALL, NULL}, {0}};
static PyMemberDef COUNTER_MEMBERS[] = {{"free_bytes", T_LONGLONG, offsetof(ByteCounter, free_bytes), 0, NULL}, {0}};
static PyType_Slot COUNTER_SLOTS[] = {{Py_tp_methods, COUNTER_METHODS}, {Py_tp_members, COUNTER_MEMBERS}, {0}};
static PyType_Spec COUNTER = {
    .name = "fairlead_kafka.base._native.ByteCounter", .size = sizeof(ByteCounter), .flags = Py_TPFLAGS_BASETYPE, .slots = COUNTER_SLOTS,
};

/* RecordBuffer */

static PyObject *new_array(long long bytes) { return PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes); }

static bool resized(PyObject *array, long long bytes) { return !array || PyByteArray_Resize(array, (Py_ssize_t)bytes) == 0; }

static int64_t *int64s(PyObject *array) { return (int64_t *)(void *)PyByteArray_AsString(array); }

/* Room for one row more in every array. */
static bool room_for_row(RecordBuffer *buffer) {
    if (buffer->count < buffer->room) return true;
    long long room = buffer->room ? 2 * buffer->room : FIRST_ROWS;
    for (int i = 0; i < COLUMNS; i++)
        if (!resized(buffer->columns[i].offsets, 8 * (room + 1)) || !resized(buffer->columns[i].valid, room)) return false;
    if (!resized(buffer->partitions, 4 * room) || !resized(buffer->timestamps, 8 * room)) return false;
    buffer->room = room;
    return true;
}

/* The column begins, with a null for each record before. */
static bool begin_column(RecordBuffer *buffer, Column *column, long long bytes) {
    long long room = bytes > FIRST_BYTES / 2 ? 2 * bytes : FIRST_BYTES;
    PyObject *arrays[] = {new_array(room), new_array(8 * (buffer->room + 1)), new_array(buffer->room)};
    if (!arrays[0] || !arrays[1] || !arrays[2]) {
        release(arrays, 3);
        return false;
    }
    column->data = arrays[0], column->offsets = arrays[1], column->valid = arrays[2];
    column->room_bytes = room;
    column->nulls = buffer->count;
    memset(PyByteArray_AsString(column->offsets), 0, (size_t)(8 * (buffer->count + 1)));
    memset(PyByteArray_AsString(column->valid), 0, (size_t)buffer->count);
    return true;
}

/* Room for an item in the column; a column that has had nothing but None does without. */
static bool room_for_item(RecordBuffer *buffer, Column *column, PyObject *item) {
    if (is_none(item)) return true;
    if (!column->data) return begin_column(buffer, column, PyBytes_Size(item));
    long long needed = column->bytes + PyBytes_Size(item), room = column->room_bytes;
    if (needed <= room) return true;
    room = 2 * room < buffer->most_bytes ? 2 * room : buffer->most_bytes;
    if (room < needed) room = needed;
    if (!resized(column->data, room)) return false;
    column->room_bytes = room;
    return true;
}

static void put_item(Column *column, PyObject *item, long long row) {
    if (!column->data) return;
    bool valid = !is_none(item);
    if (valid) {
        long long size = PyBytes_Size(item);
        memcpy(PyByteArray_AsString(column->data) + column->bytes, PyBytes_AsString(item), (size_t)size);
        column->bytes += size;
    } else
        column->nulls++;
    int64s(column->offsets)[row + 1] = column->bytes;
    PyByteArray_AsString(column->valid)[row] = valid;
}

/* An array of one number per record, which begins with the first that is given: -1 for each record before. */
static bool room_for_number(RecordBuffer *buffer, PyObject **array, int item_bytes, long long number) {
    if (number < 0 || *array) return true;
    *array = new_array(item_bytes * buffer->room);
    if (*array) memset(PyByteArray_AsString(*array), 0xff, (size_t)(item_bytes * buffer->count));
    return *array != NULL;
}

/* A list of one object per record, as far as any record has one: None for those before. */
static bool put_object(PyObject *list, PyObject *item, long long row) {
    if (is_none(item)) return true;
    while (PyList_Size(list) < row)
        if (PyList_Append(list, &_Py_NoneStruct) < 0) return false;
    return PyList_Append(list, item) == 0;
}

/* What was appended to a list is taken off, the error stays. */
static void cut(PyObject *list, Py_ssize_t size) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (PyList_SetSlice(list, size, PyList_Size(list), NULL) < 0) PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

static bool put_objects(RecordBuffer *buffer, const SingleRecord *record) {
    Py_ssize_t headers = PyList_Size(buffer->headers), callbacks = PyList_Size(buffer->callbacks);
    bool put = put_object(buffer->headers, record->headers, buffer->count) && put_object(buffer->callbacks, record->callback, buffer->count);
    if (!put) cut(buffer->headers, headers), cut(buffer->callbacks, callbacks);
    return put;
}

long long append_record(RecordBuffer *buffer, const SingleRecord *record, ByteCounter *pool) {
    if (buffer->taken) {
        PyErr_Format(PyExc_ValueError, "the columns of this buffer were taken");
        return FAILED;
    }
    if (pool && record->size > pool->free_bytes) return NO_ROOM;
    Column *values = &buffer->columns[VALUES], *keys = &buffer->columns[KEYS];
    long long row = buffer->count;
    bool room = room_for_row(buffer) && room_for_item(buffer, values, record->value) && room_for_item(buffer, keys, record->key) &&
                room_for_number(buffer, &buffer->partitions, 4, record->partition) &&
                room_for_number(buffer, &buffer->timestamps, 8, record->timestamp_ms);
    if (!room || !put_objects(buffer, record)) return FAILED;
    put_item(values, record->value, row);
    put_item(keys, record->key, row);
    if (buffer->partitions) ((int32_t *)(void *)PyByteArray_AsString(buffer->partitions))[row] = (int32_t)record->partition;
    if (buffer->timestamps) int64s(buffer->timestamps)[row] = record->timestamp_ms;
    buffer->count = row + 1;
    buffer->size_bytes += record->size;
    if (pool) pool->free_bytes -= record->size;
    return row;
}

static PyObject *buffer_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    PyObject *delivery, *callbacks, *headers;
    long long most_bytes;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "OO!O!L", &delivery, &PyList_Type, &callbacks, &PyList_Type, &headers, &most_bytes)) return NULL;
    RecordBuffer *buffer = (RecordBuffer *)PyType_GenericAlloc(type, 0);
    if (!buffer) return NULL;
    buffer->delivery = referred(delivery), buffer->callbacks = referred(callbacks), buffer->headers = referred(headers);
    buffer->most_bytes = most_bytes;
    return (PyObject *)buffer;
}

static PyObject *buffer_append(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 8 || !is_bytes_or_none(arguments[0]) || !is_bytes_or_none(arguments[1]))
        return PyErr_Format(
            PyExc_TypeError, "append takes value, key (bytes or None), partition, timestamp, headers, callback, size and pool"
        );
    PyObject *pool = arguments[7];
    if (!is_none(pool) && !PyType_IsSubtype(pool->type, byte_counter_type))
        return PyErr_Format(PyExc_TypeError, "the pool is no ByteCounter");
    SingleRecord record = {.value = arguments[0], .key = arguments[1], .headers = arguments[4], .callback = arguments[5]};
    record.partition = PyLong_AsLongLong(arguments[2]);
    record.timestamp_ms = PyLong_AsLongLong(arguments[3]);
    record.size = PyLong_AsLongLong(arguments[6]);
    if (PyErr_Occurred()) return NULL;
    long long row = append_record((RecordBuffer *)self, &record, is_none(pool) ? NULL : (ByteCounter *)pool);
    return row == FAILED ? NULL : PyLong_FromLongLong(row);
}

static PyObject *given(PyObject *array) { return array ? array : &_Py_NoneStruct; }

static PyObject *column_of(RecordBuffer *buffer, Column *column) {
    if (!column->data) return referred(&_Py_NoneStruct);
    if (!resized(column->data, column->bytes) || !resized(column->offsets, 8 * (buffer->count + 1)) || !resized(column->valid, buffer->count))
        return NULL;
    return Py_BuildValue("(OOO)", column->data, column->offsets, column->nulls ? column->valid : &_Py_NoneStruct);
}

static PyObject *buffer_take_columns(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    RecordBuffer *buffer = (RecordBuffer *)self;
    (void)arguments;
    if (count) return PyErr_Format(PyExc_TypeError, "take_columns takes no arguments");
    if (buffer->taken) return PyErr_Format(PyExc_ValueError, "the columns of this buffer were taken");
    buffer->taken = true; /* also if what follows fails: then arrays may be smaller than is noted */
    PyObject *found[] = {column_of(buffer, &buffer->columns[VALUES]), column_of(buffer, &buffer->columns[KEYS])}, *all = NULL;
    bool whole = resized(buffer->partitions, 4 * buffer->count) && resized(buffer->timestamps, 8 * buffer->count);
    if (found[0] && found[1] && whole)
        all = Py_BuildValue("(OOOO)", found[0], found[1], given(buffer->partitions), given(buffer->timestamps));
    release(found, 2);
    return all;
}

static int buffer_traverse(PyObject *self, visitproc visit, void *argument) {
    return visit_all(self, &((RecordBuffer *)self)->delivery, OBJECTS, visit, argument);
}

static int buffer_clear(PyObject *self) {
    RecordBuffer *buffer = (RecordBuffer *)self;
    buffer->taken = true;
    release(&buffer->delivery, OBJECTS);
    return 0;
}

static void buffer_dealloc(PyObject *self) {
    RecordBuffer *buffer = (RecordBuffer *)self;
    PyObject_GC_UnTrack(self);
    buffer_clear(self);
    release(&buffer->partitions, 2);
    for (int i = 0; i < COLUMNS; i++) release(&buffer->columns[i].data, 3);
    free_instance(self);
}

static PyMethodDef BUFFER_METHODS[] = {
    {"append", buffer_append, METH_FASTCALL, NULL}, {"take_columns", buffer_take_columns, METH_FASTCALL, NULL}, {0},
};
static PyMemberDef BUFFER_MEMBERS[] = {
    {"delivery", T_OBJECT_EX, offsetof(RecordBuffer, delivery), READONLY, NULL},
    {"count", T_LONGLONG, offsetof(RecordBuffer, count), READONLY, NULL},
    {"size_bytes", T_LONGLONG, offsetof(RecordBuffer, size_bytes), READONLY, NULL},
    {0},
};
static PyType_Slot BUFFER_SLOTS[] = {
    {Py_tp_new, (void *)buffer_new}, {Py_tp_dealloc, (void *)buffer_dealloc}, {Py_tp_traverse, (void *)buffer_traverse},
    {Py_tp_clear, (void *)buffer_clear}, {Py_tp_methods, BUFFER_METHODS}, {Py_tp_members, BUFFER_MEMBERS}, {0},
};
static PyType_Spec BUFFER = {
    .name = "fairlead_kafka.base._native.RecordBuffer", .size = sizeof(RecordBuffer), .flags = Py_TPFLAGS_HAVE_GC, .slots = BUFFER_SLOTS,
};

bool add_record_buffer(PyObject *module) {
    return add_type(module, "ByteCounter", &COUNTER, &byte_counter_type) && add_type(module, "RecordBuffer", &BUFFER, &record_buffer_type);
}
