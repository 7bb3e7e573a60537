/* A method of a class, answered by native code where that can be, else by its Python function.

   The object it is called on has a dict `_native_calls` from the method's name to a callable, or,
   for methods with an option such as a frame, to a dict of callables by option. A callable
   returns None for what it does not take. */
#include "calls.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;   /* in Python: it takes everything, and raises errors */
    PyObject *prepare;    /* prepare(self, name, option) is called once that has answered */
    PyObject *name;
    PyObject *parameters; /* names of all parameters after self */
    Py_ssize_t required;  /* how many of them the callable takes */
    int kind;             /* n: no option; o: an option after what is required; k: by names */
    PyObject *calls;      /* "_native_calls" */
} Method;

/* The arguments by position, without self, or -1 where that cannot be. Those that are left out, or
   None or False, are NULL. */
static Py_ssize_t order_arguments(const Method *method, PyObject *const *given, Py_ssize_t count,
                                  PyObject *names, PyObject **ordered)
{
    Py_ssize_t all = PyTuple_GET_SIZE(method->parameters);
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    if (count < 1 || count - 1 > all)
        return -1;
    memset(ordered, 0, all * sizeof *ordered);
    memcpy(ordered, given + 1, (count - 1) * sizeof *ordered);
    for (Py_ssize_t k = 0; k < named; k++) {
        Py_ssize_t i = 0;
        while (i < all && PyTuple_GET_ITEM(method->parameters, i) != PyTuple_GET_ITEM(names, k))
            i++;
        if (i == all || ordered[i] != NULL)
            return -1;
        ordered[i] = given[count + k];
    }
    for (Py_ssize_t i = 0; i < all; i++)
        if (ordered[i] == Py_None || ordered[i] == Py_False)
            ordered[i] = NULL;
    return all;
}

/* What the call is chosen by: a new reference, or NULL where there is nothing to go by. */
static PyObject *option_of(const Method *method, PyObject *const *ordered)
{
    if (method->kind == 'o')
        return Py_XNewRef(ordered[method->required]);
    if (method->kind == 'n' || ordered[0] == NULL || !PyDict_CheckExact(ordered[0]))
        return Py_NewRef(Py_None);
    PyObject *keys = PyDict_Keys(ordered[0]);
    PyObject *option = keys == NULL ? NULL : PyList_AsTuple(keys);
    Py_XDECREF(keys);
    return option;
}

/* Ask native code; None where it does not answer, NULL with an error where memory is short. */
static PyObject *ask(const Method *method, PyObject *self, PyObject **ordered, Py_ssize_t all,
                     PyObject *option)
{
    Py_ssize_t count = method->required;
    for (Py_ssize_t i = 0; i < count; i++)
        if (ordered[i] == NULL)
            Py_RETURN_NONE;
    if (method->kind == 'k' && ordered[1] != NULL)
        count = 2;
    for (Py_ssize_t i = method->kind == 'n' ? count : 2; method->kind != 'o' && i < all; i++)
        if (ordered[i] != NULL)
            Py_RETURN_NONE;
    PyObject *answer = NULL;
    PyObject *calls = PyObject_GetAttr(self, method->calls);
    if (calls != NULL && PyDict_CheckExact(calls)) {
        PyObject *call = PyDict_GetItemWithError(calls, method->name);
        if (call != NULL && method->kind != 'n')
            call = PyDict_CheckExact(call) ? PyDict_GetItemWithError(call, option) : NULL;
        if (call != NULL) {
            Py_INCREF(call);
            answer = PyObject_Vectorcall(call, ordered, count, NULL);
            Py_DECREF(call);
        }
    }
    Py_XDECREF(calls);
    if (answer == NULL && PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Clear();  /* such as an option that cannot be looked up */
    return answer == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : answer;
}

static PyObject *method_vectorcall(PyObject *self, PyObject *const *given, size_t flags,
                                   PyObject *names)
{
    Method *method = (Method *)self;
    PyObject *ordered[MOST_ARGUMENTS], *option = NULL, *answer;
    Py_ssize_t all
        = order_arguments(method, given, PyVectorcall_NARGS(flags), names, ordered);
    if (all >= 0) {
        option = option_of(method, ordered);
        answer = option == NULL ? NULL : ask(method, given[0], ordered, all, option);
        if (answer != Py_None && (answer != NULL || PyErr_Occurred())) {
            Py_XDECREF(option);
            return answer;
        }
        Py_XDECREF(answer);
    }
    answer = PyObject_Vectorcall(method->function, given, flags, names);
    if (answer != NULL && option != NULL) {
        PyObject *nothing
            = PyObject_CallFunctionObjArgs(method->prepare, given[0], method->name, option, NULL);
        if (nothing == NULL)
            Py_CLEAR(answer);
        Py_XDECREF(nothing);
    }
    Py_XDECREF(option);
    return answer;
}

static PyObject *method_get(PyObject *self, PyObject *object, PyObject *type)
{
    return object == NULL || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

static PyObject *method_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *function, *prepare, *name, *parameters;
    Py_ssize_t required;
    int kind;
    if (!PyArg_ParseTuple(arguments, "OOUO!nC:Method", &function, &prepare, &name, &PyTuple_Type,
                          &parameters, &required, &kind))
        return NULL;
    Py_ssize_t all = PyTuple_GET_SIZE(parameters);
    if (all > MOST_ARGUMENTS || required < 1 || required + (kind != 'n') > all)
        return PyErr_Format(PyExc_ValueError, "%U: not its parameters", name);
    Method *method = (Method *)type->tp_alloc(type, 0);
    if (method == NULL)
        return NULL;
    method->vectorcall = method_vectorcall;
    method->function = Py_NewRef(function);
    method->prepare = Py_NewRef(prepare);
    method->name = Py_NewRef(name);
    method->parameters = Py_NewRef(parameters);
    method->required = required;
    method->kind = kind;
    method->calls = PyUnicode_InternFromString("_native_calls");
    return (PyObject *)method;
}

static int method_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Method *)self)->function);
    Py_VISIT(((Method *)self)->prepare);
    return 0;
}

static int method_clear(PyObject *self)
{
    Py_CLEAR(((Method *)self)->function);
    Py_CLEAR(((Method *)self)->prepare);
    return 0;
}

static void method_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    method_clear(self);
    Py_XDECREF(((Method *)self)->name);
    Py_XDECREF(((Method *)self)->parameters);
    Py_XDECREF(((Method *)self)->calls);
    Py_TYPE(self)->tp_free(self);
}

/* Name, documentation and signature are those of the Python function. */
static PyObject *method_attribute(PyObject *self, void *name)
{
    return PyObject_GetAttrString(((Method *)self)->function, name);
}

static PyGetSetDef method_properties[] = {
    {"__name__", method_attribute, NULL, NULL, "__name__"},
    {"__qualname__", method_attribute, NULL, NULL, "__qualname__"},
    {"__module__", method_attribute, NULL, NULL, "__module__"},
    {"__doc__", method_attribute, NULL, NULL, "__doc__"},
    {"__annotations__", method_attribute, NULL, NULL, "__annotations__"},
    {NULL},
};

static PyMemberDef method_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Method, function), READONLY, NULL},
    {NULL},
};

PyTypeObject MethodType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rbda_ros._native.calls.Method",
    .tp_basicsize = sizeof(Method),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL
                | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(Method, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = method_get,
    .tp_new = method_new,
    .tp_dealloc = method_dealloc,
    .tp_traverse = method_traverse,
    .tp_clear = method_clear,
    .tp_getset = method_properties,
    .tp_members = method_members,
};
