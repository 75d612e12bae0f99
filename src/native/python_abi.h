/* The part of CPython's stable ABI (PEP 384, of 3.11) that the kernels use, declared here so that they compile where Python's headers
 * are not installed, and for other platforms than the one at hand. What is here is frozen: no later Python may change it. */
#ifndef FAIRLEAD_PYTHON_ABI_H
#define FAIRLEAD_PYTHON_ABI_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define IMPORTED __declspec(dllimport)
#define EXPORTED __declspec(dllexport)
#else
#define IMPORTED extern
#define EXPORTED __attribute__((visibility("default")))
#endif

typedef ptrdiff_t Py_ssize_t;
typedef struct PyTypeObject PyTypeObject;
typedef struct PyThreadState PyThreadState;

/* What every object begins with. */
typedef struct PyObject {
    Py_ssize_t reference_count;
    PyTypeObject *type;
} PyObject;

typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len;
    Py_ssize_t itemsize;
    int readonly;
    int ndim;
    char *format;
    Py_ssize_t *shape;
    Py_ssize_t *strides;
    Py_ssize_t *suboffsets;
    void *internal;
} Py_buffer;

typedef PyObject *(*FastFunction)(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
typedef PyObject *(*FastKeywordFunction)(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names);

typedef struct {
    const char *name;
    FastFunction function;
    int flags;
    const char *doc;
} PyMethodDef;

typedef struct {
    const char *name;
    int kind;
    Py_ssize_t offset;
    int flags;
    const char *doc;
} PyMemberDef;

typedef struct {
    int slot;
    void *value;
} PyModuleDef_Slot, PyType_Slot;

typedef struct {
    const char *name;
    int size;
    int item_size;
    unsigned int flags;
    PyType_Slot *slots;
} PyType_Spec;

typedef int (*visitproc)(PyObject *object, void *argument);

typedef struct {
    Py_ssize_t reference_count;
    void *type;
    PyObject *(*init)(void);
    Py_ssize_t index;
    PyObject *copy;
    const char *name;
    const char *doc;
    Py_ssize_t size;
    PyMethodDef *methods;
    PyModuleDef_Slot *slots;
    void *traverse;
    void *clear;
    void *free;
} PyModuleDef;

enum { METH_KEYWORDS = 0x0002, METH_FASTCALL = 0x0080 };
enum { Py_mod_exec = 2 };
enum { Py_tp_clear = 51, Py_tp_dealloc = 52, Py_tp_methods = 64, Py_tp_new = 65, Py_tp_traverse = 71, Py_tp_members = 72, Py_tp_free = 74 };
enum { Py_TPFLAGS_BASETYPE = 1 << 10, Py_TPFLAGS_HAVE_GC = 1 << 14 };
enum { T_OBJECT_EX = 16, T_LONGLONG = 17, READONLY = 1 };
enum { PyBUF_WRITABLE = 0x0001, PyBUF_FORMAT = 0x0004, PyBUF_ND = 0x0008, PyBUF_C_CONTIGUOUS = 0x0038 };

IMPORTED PyObject *PyExc_TypeError;
IMPORTED PyObject *PyExc_IndexError;
IMPORTED PyObject *PyExc_ValueError;

IMPORTED PyTypeObject PyType_Type, PyBytes_Type, PyUnicode_Type, PyLong_Type, PyDict_Type, PyList_Type;

IMPORTED PyObject *PyModuleDef_Init(PyModuleDef *definition);
IMPORTED int PyObject_GetBuffer(PyObject *object, Py_buffer *view, int flags);
IMPORTED void PyBuffer_Release(Py_buffer *view);
IMPORTED long long PyLong_AsLongLong(PyObject *object);
IMPORTED PyObject *PyLong_FromLongLong(long long number);
IMPORTED PyObject _Py_NoneStruct;
IMPORTED void Py_IncRef(PyObject *object);
IMPORTED void Py_DecRef(PyObject *object);
IMPORTED PyObject *PyBytes_FromStringAndSize(const char *bytes, Py_ssize_t size);
IMPORTED PyObject *PyList_New(Py_ssize_t size);
IMPORTED int PyList_SetItem(PyObject *list, Py_ssize_t position, PyObject *item);
IMPORTED PyObject *PyTuple_New(Py_ssize_t size);
IMPORTED int PyTuple_SetItem(PyObject *tuple, Py_ssize_t position, PyObject *item);
IMPORTED Py_ssize_t PyTuple_Size(PyObject *tuple);
IMPORTED PyObject *PyTuple_GetItem(PyObject *tuple, Py_ssize_t position);
IMPORTED int PyArg_ParseTuple(PyObject *arguments, const char *format, ...);
IMPORTED PyObject *Py_BuildValue(const char *format, ...);
IMPORTED char *PyBytes_AsString(PyObject *bytes);
IMPORTED Py_ssize_t PyBytes_Size(PyObject *bytes);
IMPORTED PyObject *PyByteArray_FromStringAndSize(const char *bytes, Py_ssize_t size);
IMPORTED int PyByteArray_Resize(PyObject *array, Py_ssize_t size);
IMPORTED char *PyByteArray_AsString(PyObject *array);
IMPORTED Py_ssize_t PyList_Size(PyObject *list);
IMPORTED int PyList_Append(PyObject *list, PyObject *item);
IMPORTED int PyList_SetSlice(PyObject *list, Py_ssize_t start, Py_ssize_t stop, PyObject *items);
IMPORTED PyObject *PyDict_New(void);
IMPORTED PyObject *PyDict_GetItemWithError(PyObject *dict, PyObject *key);
IMPORTED int PyDict_SetItem(PyObject *dict, PyObject *key, PyObject *item);
IMPORTED PyObject *PyUnicode_InternFromString(const char *text);
IMPORTED Py_ssize_t PyObject_Size(PyObject *object);
IMPORTED PyObject *PyObject_Call(PyObject *function, PyObject *arguments, PyObject *keywords);
IMPORTED PyObject *PyBool_FromLong(long number);
IMPORTED PyObject *PyType_FromSpec(PyType_Spec *spec);
IMPORTED PyObject *PyType_GenericAlloc(PyTypeObject *type, Py_ssize_t items);
IMPORTED void *PyType_GetSlot(PyTypeObject *type, int slot);
IMPORTED int PyType_IsSubtype(PyTypeObject *type, PyTypeObject *base);
IMPORTED void PyObject_GC_UnTrack(void *object);
IMPORTED int PyModule_AddObjectRef(PyObject *module, const char *name, PyObject *value);
IMPORTED unsigned long PyType_GetFlags(PyTypeObject *type);
IMPORTED void PyErr_Clear(void);
IMPORTED void PyErr_Fetch(PyObject **type, PyObject **value, PyObject **traceback);
IMPORTED void PyErr_Restore(PyObject *type, PyObject *value, PyObject *traceback);
IMPORTED PyObject *PyErr_Occurred(void);
IMPORTED int PyCallable_Check(PyObject *object);
IMPORTED PyObject *PyErr_Format(PyObject *exception, const char *format, ...);
IMPORTED PyThreadState *PyEval_SaveThread(void);
IMPORTED void PyEval_RestoreThread(PyThreadState *state);

#endif
