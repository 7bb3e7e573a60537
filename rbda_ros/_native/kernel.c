/* A kernel in machine code as a callable: call(*inputs) -> tuple of new arrays, or
   call(*inputs, *outputs), which writes into arrays that exist. */
#include "calls.h"

static PyObject *kernel_vectorcall(PyObject *self, PyObject *const *arguments, size_t flags,
                                   PyObject *names)
{
  Kernel *kernel = (Kernel *)self;
  int given = kernel->into ? kernel->ports : kernel->inputs;
  double *ports[MOST_PORTS];
  PyObject *result;

  if (PyVectorcall_NARGS(flags) != given || names != NULL || kernel->withdrawn) goto otherwise;
  for (int i = 0; i < given; i++) {
    ports[i] = vector_of(arguments[i], kernel->size[i]);
    if (ports[i] == NULL) goto otherwise;
    if (i >= kernel->inputs && !PyArray_ISWRITEABLE((PyArrayObject *)arguments[i])) goto otherwise;
  }
  if (kernel->into) {
    kernel->evaluate(ports);
    Py_RETURN_NONE;
  }
  result = PyTuple_New(kernel->ports - given);
  if (result == NULL) return NULL;
  for (int i = given; i < kernel->ports; i++) {
    PyObject *output = new_vector(kernel->size[i]);
    if (output == NULL) {
      Py_DECREF(result);
      return NULL;
    }
    ports[i] = PyArray_DATA((PyArrayObject *)output);
    PyTuple_SET_ITEM(result, i - given, output);
  }
  kernel->evaluate(ports);
  return result;

otherwise:
  return PyObject_Vectorcall(kernel->withdrawn ? kernel->instead : kernel->otherwise, arguments,
                             flags, names);
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
  unsigned long long address;
  PyObject *inputs, *outputs, *otherwise;
  int into;
  if (!PyArg_ParseTuple(arguments, "KO!O!Op:Kernel", &address, &PyTuple_Type, &inputs,
                        &PyTuple_Type, &outputs, &otherwise, &into))
    return NULL;
  Py_ssize_t count = PyTuple_GET_SIZE(inputs), ports = count + PyTuple_GET_SIZE(outputs);
  if (ports > MOST_PORTS)
    return PyErr_Format(PyExc_ValueError, "%zd inputs and outputs are more than %d", ports,
                        MOST_PORTS);
  Kernel *kernel = (Kernel *)type->tp_alloc(type, 0);
  if (kernel == NULL) return NULL;
  kernel->vectorcall = kernel_vectorcall;
  kernel->evaluate = (Evaluate)(uintptr_t)address;
  kernel->inputs = (int)count;
  kernel->ports = (int)ports;
  kernel->into = into;
  kernel->otherwise = Py_NewRef(otherwise);
  for (Py_ssize_t i = 0; i < ports; i++) {
    PyObject *size = i < count ? PyTuple_GET_ITEM(inputs, i) : PyTuple_GET_ITEM(outputs, i - count);
    kernel->size[i] = PyLong_AsSsize_t(size);
  }
  if (PyErr_Occurred()) {
    Py_DECREF(kernel);
    return NULL;
  }
  return (PyObject *)kernel;
}

static void kernel_dealloc(PyObject *self)
{
  Py_XDECREF(((Kernel *)self)->otherwise);
  Py_XDECREF(((Kernel *)self)->instead);
  Py_XDECREF(((Kernel *)self)->rows.code);
  Py_TYPE(self)->tp_free(self);
}

static PyMemberDef kernel_members[] = {
    {"otherwise", T_OBJECT, offsetof(Kernel, otherwise), READONLY, NULL},
    {NULL},
};

static PyObject *kernel_sizes(PyObject *self, void *unused)
{
  const Kernel *kernel = (Kernel *)self;
  PyObject *sizes = PyTuple_New(kernel->ports);
  for (int i = 0; sizes != NULL && i < kernel->ports; i++) {
    PyObject *size = PyLong_FromSsize_t(kernel->size[i]);
    if (size == NULL)
      Py_CLEAR(sizes);
    else
      PyTuple_SET_ITEM(sizes, i, size);
  }
  return sizes;
}

static PyObject *kernel_takes_rows(PyObject *self, void *unused)
{
  return PyBool_FromLong(((Kernel *)self)->rows.evaluate != NULL);
}

static PyObject *kernel_use_rows(PyObject *self, PyObject *arguments)
{
  Kernel *kernel = (Kernel *)self;
  unsigned long long address, checked, constants;
  RowsCode rows;
  if (!PyArg_ParseTuple(arguments, "KKKnndO:use_rows", &address, &checked, &constants, &rows.memory,
                        &rows.together, &rows.instructions, &rows.code))
    return NULL;
  if (rows.memory < 0 || rows.together < 1)
    return PyErr_Format(PyExc_ValueError, "no memory, or no rows");
  if (kernel->rows.evaluate == NULL) { /* or another thread was first */
    rows.evaluate = (EvaluateRows)(uintptr_t)address;
    rows.checked = (EvaluateRows)(uintptr_t)checked;
    rows.constants = (const double *)(uintptr_t)constants;
    Py_INCREF(rows.code);
    kernel->rows = rows;
  }
  Py_RETURN_NONE;
}

static PyObject *kernel_withdraw(PyObject *self, PyObject *instead)
{
  Kernel *kernel = (Kernel *)self;
  Py_XSETREF(kernel->instead, Py_NewRef(instead));
  kernel->withdrawn = 1;
  Py_RETURN_NONE;
}

static PyMethodDef kernel_methods[] = {
    {"withdraw", kernel_withdraw, METH_O, "withdraw(callable): that answers from here on."},
    {"use_rows", kernel_use_rows, METH_VARARGS,
     "use_rows(address, address of what checks loops too or 0, address of constants, numbers of"
     " memory, rows at once, instructions, owner): machine code for batches."},
    {NULL},
};

static PyGetSetDef kernel_properties[] = {
    {"takes_rows", kernel_takes_rows, NULL, "Whether there is machine code for batches.", NULL},
    {"sizes", kernel_sizes, NULL, "Of inputs, then of outputs.", NULL},
    {NULL},
};

PyTypeObject KernelType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros._native.calls.Kernel",
    .tp_doc = "Kernel(address, input sizes, output sizes, otherwise, into): a compiled program.",
    .tp_basicsize = sizeof(Kernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Kernel, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = kernel_new,
    .tp_dealloc = kernel_dealloc,
    .tp_methods = kernel_methods,
    .tp_members = kernel_members,
    .tp_getset = kernel_properties,
};
