/* Methods of a class that the engine evaluates.

   An object that has such methods is a `MethodTable`. It has a callable for each of them, or, for
   methods with an option such as a frame, a dict of callables by option; for those that take
   wrenches and friction, a tuple of four. Contacts are looked up by identity, not by equality.
   Callables are made when they are first needed. If a callable rejects its arguments, a Python
   function reads them and tries again, or explains what is wrong. */
#include "operation_call.h"

typedef struct {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyTypeObject *type;  /* the last type that was found to be a MethodTable */
  Py_ssize_t index;    /* among the methods */
  Py_ssize_t required; /* how many arguments the callable takes */
  Py_ssize_t all;      /* how many parameters there are after self */
  int kind;            /* what follows the required arguments. n: nothing; o: an option; k: a guess,
                          and the keys of a dict are the option; w: wrenches and friction; f: frames,
                          damping and linear_only; c: contacts, wrenches, when to stop, the route */
  PyObject *function;  /* in Python: takes rejected arguments */
  PyObject *prepare;   /* prepare(self, name, option) -> whether there is a callable now */
  PyObject *name;
  PyObject *parameters; /* names of all parameters after self */
} MethodDispatch;

/* Whether None or False means that an argument is left out: not for damping, nor for when to stop. */
static int may_be_left_out(const MethodDispatch *method, Py_ssize_t i)
{
  if (method->kind == 'f') return i != method->required + 1;
  return method->kind != 'c' || i <= method->required + 1;
}

/* The arguments by position, without self; -1 if they do not fit the parameters. Those that are left
   out are NULL. */
static Py_ssize_t order_arguments(const MethodDispatch *method, PyObject *const *given,
                                  Py_ssize_t count, PyObject *names, PyObject **ordered)
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

/* (a list or tuple as a tuple, another object), or NULL. */
static PyObject *pair_of(PyObject *given, PyObject *with)
{
  if (given == NULL || with == NULL) return NULL;
  PyObject *all = PyList_CheckExact(given) ? PyList_AsTuple(given) : Py_NewRef(given);
  PyObject *both = all == NULL ? NULL : PyTuple_Pack(2, all, with);
  Py_XDECREF(all);
  return both;
}

/* The option that the callable is looked up by: a new reference, or NULL if there is none. */
static PyObject *option_of(const MethodDispatch *method, PyObject *const *ordered)
{
  PyObject *const *more = ordered + method->required;
  if (method->kind == 'f')
    return pair_of(more[0], more[2] == NULL ? Py_False : more[2] == Py_True ? Py_True : NULL);
  if (method->kind == 'c') return pair_of(more[0], more[4] == NULL ? Py_Ellipsis : more[4]);
  if (method->kind == 'o') return Py_XNewRef(ordered[method->required]);
  if (method->kind == 'w') return PyLong_FromLong((more[0] != NULL) + 2 * (more[1] != NULL));
  if (method->kind == 'n' || ordered[0] == NULL || !PyDict_CheckExact(ordered[0]))
    return Py_NewRef(Py_None);
  PyObject *keys = PyDict_Keys(ordered[0]);
  PyObject *option = keys == NULL ? NULL : PyList_AsTuple(keys);
  Py_XDECREF(keys);
  return option;
}

/* The identities of the contacts of an option, and the route: a new reference, or NULL. */
static PyObject *contact_key(PyObject *option)
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

/* The callable for an object and an option, borrowed; NULL if there is none. */
static PyObject *find_call(MethodDispatch *method, PyObject *self, PyObject *option)
{
  if (Py_TYPE(self) != method->type) {
    if (!PyObject_TypeCheck(self, &MethodTableType)) return NULL;
    Py_XSETREF(method->type, (PyTypeObject *)Py_NewRef(Py_TYPE(self)));
  }
  PyObject *call = ((MethodTable *)self)->call[method->index];
  if (call == NULL || method->kind == 'n') return call;
  if (method->kind == 'w') {
    call = PyTuple_CheckExact(call) ? PyTuple_GET_ITEM(call, PyLong_AsLong(option)) : NULL;
    return call == Py_None ? NULL : call;
  }
  PyObject *key = method->kind == 'c' ? contact_key(option) : Py_NewRef(option);
  call = key == NULL ? NULL : PyDict_GetItemWithError(call, key);
  Py_XDECREF(key);
  PyErr_Clear(); /* e.g. of an option that cannot be hashed */
  return call;
}

/* Replace the given arguments by those of the callable: how many, or -1 if it cannot take them. */
static Py_ssize_t select_arguments(const MethodDispatch *method, PyObject **ordered)
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

/* The callable, made if there is none yet, borrowed; NULL if there can be none, or with an
   exception. */
static PyObject *find_or_make_call(MethodDispatch *method, PyObject *self, PyObject *option)
{
  PyObject *call = find_call(method, self, option);
  if (call != NULL || !PyObject_TypeCheck(self, &MethodTableType)) return call;
  PyObject *made = PyObject_CallFunctionObjArgs(method->prepare, self, method->name, option, NULL);
  if (made == NULL) return NULL;
  Py_DECREF(made);
  return made == Py_True ? find_call(method, self, option) : NULL;
}

/* Evaluate by the callable; NULL without an exception if there is none. */
static PyObject *evaluate(MethodDispatch *method, PyObject *self, PyObject **ordered,
                          PyObject *option)
{
  Py_ssize_t count = select_arguments(method, ordered);
  PyObject *call = count < 0 ? NULL : find_or_make_call(method, self, option);
  if (call == NULL) return NULL;
  Py_INCREF(call);
  PyObject *answer = PyObject_Vectorcall(call, ordered, count, NULL);
  Py_DECREF(call);
  return answer;
}

/* Evaluate an operation call with the required arguments alone: the shortest path for most calls.
   NULL without an exception if there is none. */
static PyObject *evaluate_directly(const MethodDispatch *method, PyObject *const *given)
{
  if (Py_TYPE(given[0]) != method->type) return NULL;
  PyObject *call = ((MethodTable *)given[0])->call[method->index];
  if (call != NULL && method->kind == 'w' && PyTuple_CheckExact(call))
    call = PyTuple_GET_ITEM(call, 0);
  if (call == NULL || Py_TYPE(call) != &OperationCallType) return NULL;
  Py_INCREF(call);
  PyObject *answer = ((OperationCall *)call)->vectorcall(call, given + 1, method->required, NULL);
  Py_DECREF(call);
  return answer;
}

static PyObject *method_vectorcall(PyObject *self, PyObject *const *given, size_t flags,
                                   PyObject *names)
{
  MethodDispatch *method = (MethodDispatch *)self;
  PyObject *ordered[MAX_ARGUMENTS], *answer = NULL;
  if (names == NULL && PyVectorcall_NARGS(flags) == method->required + 1) {
    answer = evaluate_directly(method, given);
    if (answer == NULL && PyErr_Occurred()) return NULL;
  }
  if (answer == NULL
      && order_arguments(method, given, PyVectorcall_NARGS(flags), names, ordered) >= 0) {
    PyObject *option = option_of(method, ordered);
    if (option == NULL)
      PyErr_Clear();
    else {
      answer = evaluate(method, given[0], ordered, option);
      Py_DECREF(option);
      if (answer == NULL && PyErr_Occurred()) return NULL;
    }
  }
  if (answer != NULL && !is_rejection(answer)) return answer;
  Py_XDECREF(answer);
  return PyObject_Vectorcall(method->function, given, flags, names);
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
  if (!PyArg_ParseTuple(arguments, "OOUnO!nC:MethodDispatch", &function, &prepare, &name, &index,
                        &PyTuple_Type, &parameters, &required, &kind))
    return NULL;
  Py_ssize_t all = PyTuple_GET_SIZE(parameters);
  Py_ssize_t more = kind == 'n' ? 0 : kind == 'w' ? 2 : kind == 'f' ? 3 : kind == 'c' ? 5 : 1;
  if (all > MAX_ARGUMENTS || required < 1 || required + more > all || index < 0
      || index >= MAX_METHODS)
    return PyErr_Format(PyExc_ValueError, "%U: not its parameters", name);
  MethodDispatch *method = (MethodDispatch *)type->tp_alloc(type, 0);
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
  Py_VISIT(((MethodDispatch *)self)->function);
  Py_VISIT(((MethodDispatch *)self)->prepare);
  Py_VISIT(((MethodDispatch *)self)->type);
  return 0;
}

static int method_clear(PyObject *self)
{
  Py_CLEAR(((MethodDispatch *)self)->function);
  Py_CLEAR(((MethodDispatch *)self)->prepare);
  Py_CLEAR(((MethodDispatch *)self)->type);
  return 0;
}

static void method_dealloc(PyObject *self)
{
  PyObject_GC_UnTrack(self);
  method_clear(self);
  Py_XDECREF(((MethodDispatch *)self)->name);
  Py_XDECREF(((MethodDispatch *)self)->parameters);
  Py_TYPE(self)->tp_free(self);
}

/* Name, documentation and signature are those of the Python function. */
static PyObject *method_attribute(PyObject *self, void *name)
{
  return PyObject_GetAttrString(((MethodDispatch *)self)->function, name);
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
    {"__wrapped__", T_OBJECT, offsetof(MethodDispatch, function), READONLY, NULL},
    {NULL},
};

PyTypeObject MethodDispatchType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros.engine.core.MethodDispatch",
    .tp_basicsize = sizeof(MethodDispatch),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL
                | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(MethodDispatch, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = method_get,
    .tp_new = method_new,
    .tp_dealloc = method_dealloc,
    .tp_traverse = method_traverse,
    .tp_clear = method_clear,
    .tp_getset = method_properties,
    .tp_members = method_members,
};

static PyObject *method_table_set_call(PyObject *self, PyObject *arguments)
{
  Py_ssize_t index;
  PyObject *call;
  if (!PyArg_ParseTuple(arguments, "nO:_set_call", &index, &call)) return NULL;
  if (index < 0 || index >= MAX_METHODS)
    return PyErr_Format(PyExc_IndexError, "there are at most %d methods", MAX_METHODS);
  if (PyTuple_CheckExact(call) && PyTuple_GET_SIZE(call) != 4)
    return PyErr_Format(PyExc_ValueError, "four are needed, with and without wrenches");
  Py_XSETREF(((MethodTable *)self)->call[index], call == Py_None ? NULL : Py_NewRef(call));
  Py_RETURN_NONE;
}

static void method_table_dealloc(PyObject *self)
{
  for (int i = 0; i < MAX_METHODS; i++) Py_XDECREF(((MethodTable *)self)->call[i]);
  Py_TYPE(self)->tp_free(self);
}

static PyMethodDef method_table_methods[] = {
    {"_set_call", method_table_set_call, METH_VARARGS,
     "_set_call(index of a method, a callable, a dict of callables by option, a tuple of four,"
     " or None)."},
    {NULL},
};

PyTypeObject MethodTableType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros.engine.core.MethodTable",
    .tp_doc = "A base of classes whose methods the engine evaluates.",
    .tp_basicsize = sizeof(MethodTable),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = method_table_dealloc,
    .tp_methods = method_table_methods,
};
