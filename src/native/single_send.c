/* Handle and SingleSend: see intake.h. Where there is anything to be decided, `SingleSend.send` has a function of Python do the whole. */

#include <limits.h>

#include "intake.h"

enum { OBJECTS = 5 };

PyTypeObject *handle_type;
static PyTypeObject *single_send_type;
static PyObject *KEY, *ON_DELIVERY, *PARTITION, *TIMESTAMP_MS, *HEADERS, *VALUE;

/* Handle */


/* Out of the collector's sight: people keep them by the million, and it would walk all of them again and again. So nothing that a delivery
 * refers to may lead to a handle for ever: it gives up its callbacks when it has called them, and raises and tells copies of its errors, for
 * a traceback leads to what its frames hold. A delivery that is never settled, in a forked child, is never freed if it leads to a handle. */
static Handle *new_handle(PyTypeObject *type) {
    Handle *handle = (Handle *)PyType_GenericAlloc(type, 0);
    if (handle && PyType_GetFlags(type) & Py_TPFLAGS_HAVE_GC) PyObject_GC_UnTrack(handle);
    return handle;
}

static PyObject *handle_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    PyObject *delivery;
    long long row;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "OL", &delivery, &row)) return NULL;
    Handle *handle = new_handle(type);
    if (handle) handle->delivery = referred(delivery), handle->row = row;
    return (PyObject *)handle;
}

static void handle_dealloc(PyObject *self) {
    release(&((Handle *)self)->delivery, 1);
    free_instance(self);
}

static PyMemberDef HANDLE_MEMBERS[] = {
    {"delivery", T_OBJECT_EX, offsetof(Handle, delivery), READONLY, NULL}, {"row", T_LONGLONG, offsetof(Handle, row), READONLY, NULL}, {0},
};
static PyType_Slot HANDLE_SLOTS[] = {
    {Py_tp_new, (void *)handle_new}, {Py_tp_dealloc, (void *)handle_dealloc}, {Py_tp_members, HANDLE_MEMBERS}, {0},
};
static PyType_Spec HANDLE = {
    .name = "fairlead_kafka.base._native.Handle", .size = sizeof(Handle), .flags = Py_TPFLAGS_BASETYPE, .slots = HANDLE_SLOTS,
};

/* SingleSend */


typedef struct {
    PyObject head;
    PyObject *pool, *waiters, *open, *handle, *slow; /* OBJECTS, for the collector */
    long long largest_bytes, chunk_max_bytes, overhead_bytes;
} SingleSend;

static PyObject *single_send_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    PyObject *objects[OBJECTS];
    long long numbers[3];
    (void)keywords;
    if (!PyArg_ParseTuple(
            arguments, "OOO!O!OLLL", &objects[0], &objects[1], &PyDict_Type, &objects[2], &PyType_Type, &objects[3], &objects[4],
            &numbers[0], &numbers[1], &numbers[2]
        ))
        return NULL;
    if (!PyType_IsSubtype(objects[0]->type, byte_counter_type)) return PyErr_Format(PyExc_TypeError, "the pool is no ByteCounter");
    if (!PyType_IsSubtype((PyTypeObject *)objects[3], handle_type)) return PyErr_Format(PyExc_TypeError, "the handle is no Handle");
    SingleSend *made = (SingleSend *)PyType_GenericAlloc(type, 0);
    if (!made) return NULL;
    for (int i = 0; i < OBJECTS; i++) (&made->pool)[i] = referred(objects[i]);
    made->largest_bytes = numbers[0], made->chunk_max_bytes = numbers[1], made->overhead_bytes = numbers[2];
    return (PyObject *)made;
}

static bool number(PyObject *object, long long most, long long *found) {
    if (is_none(object)) return true;
    if (object->type != &PyLong_Type) return false;
    *found = PyLong_AsLongLong(object);
    if (*found == -1) PyErr_Clear();
    return *found >= 0 && *found <= most;
}

/* True if the arguments are what they are as a rule. */
static bool understood(SingleRecord *sent, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
    if (count < 1 || count > 2) return false;
    sent->value = count == 2 ? arguments[1] : &_Py_NoneStruct;
    sent->key = sent->headers = sent->callback = &_Py_NoneStruct;
    sent->partition = sent->timestamp_ms = -1;
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(names, i), *argument = arguments[count + i];
        if (name == KEY)
            sent->key = argument;
        else if (name == ON_DELIVERY) {
            if (argument != &_Py_NoneStruct && !PyCallable_Check(argument)) return false;
            sent->callback = argument;
        } else if (name == PARTITION) {
            if (!number(argument, INT_MAX, &sent->partition)) return false;
        } else if (name == TIMESTAMP_MS) {
            if (!number(argument, LLONG_MAX, &sent->timestamp_ms)) return false;
        } else if (name == VALUE && count == 1)
            sent->value = argument;
        else if (name != HEADERS || !is_none(argument))
            return false;
    }
    return arguments[0]->type == &PyUnicode_Type && is_bytes_or_none(sent->value) && is_bytes_or_none(sent->key);
}

/* The open buffer that may take the record without anything else to be done; NULL if there is none. */
static RecordBuffer *room_for(SingleSend *self, PyObject *topic, SingleRecord *sent) {
    sent->size = self->overhead_bytes;
    if (!is_none(sent->value)) sent->size += PyBytes_Size(sent->value);
    if (!is_none(sent->key)) sent->size += PyBytes_Size(sent->key);
    if (sent->size > self->largest_bytes || PyObject_Size(self->waiters)) return NULL;
    PyObject *found = PyDict_GetItemWithError(self->open, topic);
    if (!found) PyErr_Clear();
    if (!found || !PyType_IsSubtype(found->type, record_buffer_type)) return NULL;
    RecordBuffer *buffer = (RecordBuffer *)found;
    return buffer->size_bytes + sent->size < self->chunk_max_bytes ? buffer : NULL;
}

static PyObject *send_by_python(SingleSend *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
    PyObject *plain = PyTuple_New(count), *keywords = PyDict_New(), *sent = NULL;
    bool made = plain && keywords;
    for (Py_ssize_t i = 0; made && i < count; i++) PyTuple_SetItem(plain, i, referred(arguments[i]));
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; made && i < named; i++)
        made = PyDict_SetItem(keywords, PyTuple_GetItem(names, i), arguments[count + i]) == 0;
    if (made) sent = PyObject_Call(self->slow, plain, keywords);
    PyObject *parts[] = {plain, keywords};
    release(parts, 2);
    return sent;
}

static PyObject *single_send(PyObject *object, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
    SingleSend *self = (SingleSend *)object;
    SingleRecord sent;
    if (!self->pool) return PyErr_Format(PyExc_ValueError, "the collector has taken this apart");
    if (!understood(&sent, arguments, count, names)) return send_by_python(self, arguments, count, names);
    Handle *handle = new_handle((PyTypeObject *)self->handle); /* first, for to make one may run the collector, and that anything */
    if (!handle) return NULL;
    RecordBuffer *buffer = room_for(self, arguments[0], &sent);
    handle->row = buffer ? append_record(buffer, &sent, (ByteCounter *)self->pool) : NO_ROOM;
    if (handle->row >= 0) {
        handle->delivery = referred(buffer->delivery);
        return (PyObject *)handle;
    }
    bool failed = handle->row == FAILED;
    Py_DecRef((PyObject *)handle);
    return failed ? NULL : send_by_python(self, arguments, count, names);
}

static int single_send_traverse(PyObject *self, visitproc visit, void *argument) {
    return visit_all(self, &((SingleSend *)self)->pool, OBJECTS, visit, argument);
}

static int single_send_clear(PyObject *self) {
    release(&((SingleSend *)self)->pool, OBJECTS);
    return 0;
}

static void single_send_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    single_send_clear(self);
    free_instance(self);
}

static const char SEND_DOC[] =
    "send($self, topic, value=None, *, key=None, headers=None, partition=None, timestamp_ms=None, on_delivery=None)\n--\n\n"
    "See `Producer.send`.";
static PyMethodDef SEND_METHODS[] = {{"send", (FastFunction)(void *)single_send, METH_FASTCALL | METH_KEYWORDS, SEND_DOC}, {0}};
static PyType_Slot SEND_SLOTS[] = {
    {Py_tp_new, (void *)single_send_new}, {Py_tp_dealloc, (void *)single_send_dealloc}, {Py_tp_traverse, (void *)single_send_traverse},
    {Py_tp_clear, (void *)single_send_clear}, {Py_tp_methods, SEND_METHODS}, {0},
};
static PyType_Spec SEND = {
    .name = "fairlead_kafka.base._native.SingleSend", .size = sizeof(SingleSend), .flags = Py_TPFLAGS_HAVE_GC, .slots = SEND_SLOTS,
};

bool add_single_send(PyObject *module) {
    struct {
        PyObject **name;
        const char *text;
    } names[] = {
        {&KEY, "key"}, {&ON_DELIVERY, "on_delivery"}, {&PARTITION, "partition"}, {&TIMESTAMP_MS, "timestamp_ms"}, {&HEADERS, "headers"},
        {&VALUE, "value"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(*names[i].name = PyUnicode_InternFromString(names[i].text))) return false;
    return add_type(module, "Handle", &HANDLE, &handle_type) && add_type(module, "SingleSend", &SEND, &single_send_type);
}
