/* A method of a class, answered by native code where that can be, else by its Python function.

   An object that has such methods is an `Answering`. It has a callable for each of them, or, for
   methods with an option such as a frame, a dict of callables by option; for those that may be
   given wrenches and friction, a tuple of four. Contacts are looked up by who they are, not by
   what they are equal to. A callable returns None for what it does not take. */
#include "checked_call.h"

typedef struct {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyTypeObject *type;  /* the last that was seen to be Answering */
  Py_ssize_t index;    /* among the methods */
  Py_ssize_t required; /* how many arguments the callable takes */
  Py_ssize_t all;      /* how many parameters there are after self */
  int kind;            /* n: no option; o: an option after what is required; k: by names;
                             w: wrenches and whether there is friction come last;
                             f: frames, damping and linear_only; c: contacts, wrenches, when to
                             stop and the route */
  PyObject *function;  /* in Python: it takes everything, and raises errors */
  PyObject *prepare;   /* prepare(self, name, option) is called once that has answered */
  PyObject *name;
  PyObject *parameters; /* names of all parameters after self */
} Method;

/* Whether None, or False, is the same as nothing: not for damping, nor for how to stop. */
static int may_be_left_out(const Method *method, Py_ssize_t i)
{
  if (method->kind == 'f') return i != method->required + 1;
  return method->kind != 'c' || i <= method->required + 1;
}

/* The arguments by position, without self, or -1 where that cannot be. Those that are left out, or
   None or False, are NULL. */
static Py_ssize_t order_arguments(const Method *method, PyObject *const *given, Py_ssize_t count,
                                  PyObject *names, PyObject **ordered)
{
  Py_ssize_t all = method->all;
  Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
  if (count < 1 || count - 1 > all) return -1;
  memset(ordered, 0, all * sizeof *ordered);
  memcpy(ordered, given + 1, (count - 1) * sizeof *ordered);
  for (Py_ssize_t k = 0; k < named; k++) {
    Py_ssize_t i = 0;
    while (i < all && PyTuple_GET_ITEM(method->parameters, i) != PyTuple_GET_ITEM(names, k)) i++;
    if (i == all || ordered[i] != NULL) return -1;
    ordered[i] = given[count + k];
  }
  for (Py_ssize_t i = 0; i < all; i++)
    if ((ordered[i] == Py_None || ordered[i] == Py_False) && may_be_left_out(method, i))
      ordered[i] = NULL;
  if (method->kind == 'w') {
    PyObject **wrenches = &ordered[method->required];
    if (*wrenches != NULL && PyDict_CheckExact(*wrenches) && PyDict_GET_SIZE(*wrenches) == 0)
      *wrenches = NULL;
  }
  return all;
}

/* A list or tuple as a tuple, and something that belongs to it, both or NULL. */
static PyObject *several(PyObject *given, PyObject *with)
{
  if (given == NULL || with == NULL) return NULL;
  PyObject *all = PyList_CheckExact(given) ? PyList_AsTuple(given) : Py_NewRef(given);
  PyObject *both = all == NULL ? NULL : PyTuple_Pack(2, all, with);
  Py_XDECREF(all);
  return both;
}

/* What the call is chosen by: a new reference, or NULL where there is nothing to go by. */
static PyObject *option_of(const Method *method, PyObject *const *ordered)
{
  PyObject *const *more = ordered + method->required;
  if (method->kind == 'f')
    return several(more[0], more[2] == NULL ? Py_False : more[2] == Py_True ? Py_True : NULL);
  if (method->kind == 'c') return several(more[0], more[4] == NULL ? Py_Ellipsis : more[4]);
  if (method->kind == 'o') return Py_XNewRef(ordered[method->required]);
  if (method->kind == 'w') return PyLong_FromLong((more[0] != NULL) + 2 * (more[1] != NULL));
  if (method->kind == 'n' || ordered[0] == NULL || !PyDict_CheckExact(ordered[0]))
    return Py_NewRef(Py_None);
  PyObject *keys = PyDict_Keys(ordered[0]);
  PyObject *option = keys == NULL ? NULL : PyList_AsTuple(keys);
  Py_XDECREF(keys);
  return option;
}

/* Who the contacts of an option are, and the route: a new reference, or NULL. */
static PyObject *who(PyObject *option)
{
  PyObject *contacts = PyTuple_GET_ITEM(option, 0);
  if (!PyTuple_CheckExact(contacts)) return NULL;
  Py_ssize_t count = PyTuple_GET_SIZE(contacts);
  PyObject *key = PyTuple_New(count + 1);
  for (Py_ssize_t i = 0; key != NULL && i < count; i++) {
    PyObject *number = PyLong_FromVoidPtr(PyTuple_GET_ITEM(contacts, i));
    if (number == NULL)
      Py_CLEAR(key);
    else
      PyTuple_SET_ITEM(key, i, number);
  }
  if (key != NULL) PyTuple_SET_ITEM(key, count, Py_NewRef(PyTuple_GET_ITEM(option, 1)));
  return key;
}

/* The callable for an object and an option; NULL where there is none. Borrowed. */
static PyObject *find_call(Method *method, PyObject *self, PyObject *option)
{
  if (Py_TYPE(self) != method->type) {
    if (!PyObject_TypeCheck(self, &AnsweringType)) return NULL;
    Py_XSETREF(method->type, (PyTypeObject *)Py_NewRef(Py_TYPE(self)));
  }
  PyObject *call = ((Answering *)self)->call[method->index];
  if (call == NULL || method->kind == 'n') return call;
  if (method->kind == 'w') {
    call = PyTuple_CheckExact(call) ? PyTuple_GET_ITEM(call, PyLong_AsLong(option)) : NULL;
    return call == Py_None ? NULL : call;
  }
  PyObject *key = method->kind == 'c' ? who(option) : Py_NewRef(option);
  call = key == NULL ? NULL : PyDict_GetItemWithError(call, key);
  Py_XDECREF(key);
  PyErr_Clear(); /* such as of an option that cannot be looked up */
  return call;
}

/* The arguments of the callable, in the place of those that were given: how many, or -1 where it
   cannot take them. */
static Py_ssize_t select_arguments(const Method *method, PyObject **ordered)
{
  Py_ssize_t count = method->required, first = count + (method->kind != 'n');
  PyObject **more = ordered + count;
  for (Py_ssize_t i = 0; i < count; i++)
    if (ordered[i] == NULL) return -1;
  switch (method->kind) {
  case 'f':
    more[0] = more[1];
    return count + (more[0] != NULL);
  case 'c':
    if (more[1] != NULL) return -1;
    more[0] = more[2] == NULL ? Py_None : more[2];
    more[1] = more[3] == NULL ? Py_None : more[3];
    for (Py_ssize_t i = count + 5; i < method->all; i++)
      if (ordered[i] != NULL) return -1;
    return count + 2;
  case 'w':
    first += more[1] == Py_True;
    break;
  }
  for (Py_ssize_t i = first; i < method->all; i++)
    if (ordered[i] != NULL) return -1;
  return count + ((method->kind == 'k' || method->kind == 'w') && more[0] != NULL);
}

/* Ask native code; None where it does not answer. */
static PyObject *ask(Method *method, PyObject *self, PyObject **ordered, PyObject *option)
{
  Py_ssize_t count = select_arguments(method, ordered);
  PyObject *call = count < 0 ? NULL : find_call(method, self, option);
  if (call == NULL) Py_RETURN_NONE;
  Py_INCREF(call);
  PyObject *answer = PyObject_Vectorcall(call, ordered, count, NULL);
  Py_DECREF(call);
  return answer;
}

/* Ask a checked call with no more than it requires: what nearly all calls are, and the shortest
   way to them. None, or NULL without an error, where it does not answer. */
static PyObject *ask_directly(const Method *method, PyObject *const *given)
{
  if (Py_TYPE(given[0]) != method->type) return NULL;
  PyObject *call = ((Answering *)given[0])->call[method->index];
  if (call != NULL && method->kind == 'w' && PyTuple_CheckExact(call))
    call = PyTuple_GET_ITEM(call, 0);
  if (call == NULL || Py_TYPE(call) != &CheckedCallType) return NULL;
  Py_INCREF(call);
  PyObject *answer = ((CheckedCall *)call)->vectorcall(call, given + 1, method->required, NULL);
  Py_DECREF(call);
  return answer;
}

static PyObject *method_vectorcall(PyObject *self, PyObject *const *given, size_t flags,
                                   PyObject *names)
{
  Method *method = (Method *)self;
  PyObject *ordered[MOST_ARGUMENTS], *option = NULL, *answer;
  if (names == NULL && PyVectorcall_NARGS(flags) == method->required + 1) {
    answer = ask_directly(method, given);
    if (answer != NULL && answer != Py_None) return answer;
    if (answer == NULL && PyErr_Occurred()) return NULL;
    Py_XDECREF(answer);
  }
  Py_ssize_t all = order_arguments(method, given, PyVectorcall_NARGS(flags), names, ordered);
  if (all >= 0) {
    option = option_of(method, ordered);
    if (option == NULL)
      PyErr_Clear();
    else {
      answer = ask(method, given[0], ordered, option);
      if (answer != Py_None) {
        Py_DECREF(option);
        return answer;
      }
      Py_DECREF(answer);
    }
  }
  answer = PyObject_Vectorcall(method->function, given, flags, names);
  if (answer != NULL && option != NULL) {
    PyObject *nothing =
        PyObject_CallFunctionObjArgs(method->prepare, given[0], method->name, option, NULL);
    if (nothing == NULL) Py_CLEAR(answer);
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
  Py_ssize_t index, required;
  int kind;
  if (!PyArg_ParseTuple(arguments, "OOUnO!nC:Method", &function, &prepare, &name, &index,
                        &PyTuple_Type, &parameters, &required, &kind))
    return NULL;
  Py_ssize_t all = PyTuple_GET_SIZE(parameters);
  Py_ssize_t more = kind == 'n' ? 0 : kind == 'w' ? 2 : kind == 'f' ? 3 : kind == 'c' ? 5 : 1;
  if (all > MOST_ARGUMENTS || required < 1 || required + more > all || index < 0
      || index >= MOST_METHODS)
    return PyErr_Format(PyExc_ValueError, "%U: not its parameters", name);
  Method *method = (Method *)type->tp_alloc(type, 0);
  if (method == NULL) return NULL;
  method->vectorcall = method_vectorcall;
  method->function = Py_NewRef(function);
  method->prepare = Py_NewRef(prepare);
  method->name = Py_NewRef(name);
  method->parameters = Py_NewRef(parameters);
  method->index = index;
  method->all = all;
  method->required = required;
  method->kind = kind;
  return (PyObject *)method;
}

static int method_traverse(PyObject *self, visitproc visit, void *arg)
{
  Py_VISIT(((Method *)self)->function);
  Py_VISIT(((Method *)self)->prepare);
  Py_VISIT(((Method *)self)->type);
  return 0;
}

static int method_clear(PyObject *self)
{
  Py_CLEAR(((Method *)self)->function);
  Py_CLEAR(((Method *)self)->prepare);
  Py_CLEAR(((Method *)self)->type);
  return 0;
}

static void method_dealloc(PyObject *self)
{
  PyObject_GC_UnTrack(self);
  method_clear(self);
  Py_XDECREF(((Method *)self)->name);
  Py_XDECREF(((Method *)self)->parameters);
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
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros._native.calls.Method",
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
