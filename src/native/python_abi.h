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
typedef struct PyObject PyObject;
typedef struct PyThreadState PyThreadState;

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

typedef struct {
    const char *name;
    FastFunction function;
    int flags;
    const char *doc;
} PyMethodDef;

typedef struct {
    int slot;
    void *value;
} PyModuleDef_Slot;

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

enum { METH_FASTCALL = 0x0080 };
enum { PyBUF_WRITABLE = 0x0001, PyBUF_FORMAT = 0x0004, PyBUF_ND = 0x0008, PyBUF_C_CONTIGUOUS = 0x0038 };

IMPORTED PyObject *PyExc_TypeError;
IMPORTED PyObject *PyExc_IndexError;
IMPORTED PyObject *PyExc_ValueError;

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
IMPORTED PyObject *PyErr_Occurred(void);
IMPORTED PyObject *PyErr_Format(PyObject *exception, const char *format, ...);
IMPORTED PyThreadState *PyEval_SaveThread(void);
IMPORTED void PyEval_RestoreThread(PyThreadState *state);

#endif
