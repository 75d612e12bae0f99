/* Single records on their way into columns: what a `send` costs. The types of `fairlead_kafka.client.single_records`, which has the same in
 * Python.
 *
 * All of it runs under the interpreter's lock and gives it up nowhere between a look and what is done upon it, so it needs no other: a
 * record is counted, appended and numbered at once.
 */
#ifndef FAIRLEAD_INTAKE_H
#define FAIRLEAD_INTAKE_H

#include <stdbool.h>

#include "python_abi.h"

/* The bytes that are free. */
typedef struct {
    PyObject head;
    long long free_bytes;
} ByteCounter;

typedef struct {
    PyObject *data, *offsets, *valid; /* bytearrays; NULL until the column has its first item */
    long long bytes, room_bytes, nulls;
} Column;

enum { VALUES, KEYS, COLUMNS };

/* The records of one chunk, as columns that grow. */
typedef struct {
    PyObject head;
    PyObject *delivery, *callbacks, *headers; /* together, for the collector */
    PyObject *partitions, *timestamps;
    Column columns[COLUMNS];
    long long count, room, size_bytes, most_bytes;
    bool taken;
} RecordBuffer;

/* A row of a delivery. */
typedef struct {
    PyObject head;
    PyObject *delivery;
    long long row;
} Handle;

extern PyTypeObject *byte_counter_type, *record_buffer_type, *handle_type;

/* What a record consists of: `value` and `key` bytes or None, numbers -1 for none, `size` as it counts in buffer.memory. */
typedef struct {
    PyObject *value, *key, *headers, *callback;
    long long partition, timestamp_ms, size;
} SingleRecord;

/* Appends a record, and takes its size from the pool (NULL: it was taken before). Its row; NO_ROOM if the pool has too little, FAILED with
 * an error set, and nothing done then. */
enum { NO_ROOM = -1, FAILED = -2 };
long long append_record(RecordBuffer *buffer, const SingleRecord *record, ByteCounter *pool);
/* Adds types to a module; false with an error set. */
bool add_record_buffer(PyObject *module);
bool add_single_send(PyObject *module);

static inline bool is_none(PyObject *object) { return object == &_Py_NoneStruct; }
static inline bool is_bytes_or_none(PyObject *object) { return is_none(object) || object->type == &PyBytes_Type; }
static inline PyObject *referred(PyObject *object) {
    Py_IncRef(object);
    return object;
}

static inline void release(PyObject **objects, int count) {
    for (int i = 0; i < count; i++) {
        PyObject *object = objects[i];
        objects[i] = NULL;
        if (object) Py_DecRef(object);
    }
}

/* For the collector: an instance refers to its type, and to these. */
static inline int visit_all(PyObject *self, PyObject **objects, int count, visitproc visit, void *argument) {
    int stopped = visit((PyObject *)self->type, argument);
    for (int i = 0; !stopped && i < count; i++)
        if (objects[i]) stopped = visit(objects[i], argument);
    return stopped;
}

static inline void free_instance(PyObject *self) {
    PyTypeObject *type = self->type;
    ((void (*)(void *))PyType_GetSlot(type, Py_tp_free))(self);
    Py_DecRef((PyObject *)type);
}

/* Makes a type, unless the module was loaded before, and adds it to the module. */
static inline bool add_type(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **type) {
    if (!*type) *type = (PyTypeObject *)PyType_FromSpec(spec);
    return *type && PyModule_AddObjectRef(module, name, (PyObject *)*type) == 0;
}

#endif
