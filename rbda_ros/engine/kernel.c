/* A kernel as a callable: call(*inputs) -> tuple of new arrays, or call(*inputs, *outputs), which
   writes into the given arrays. CasADi evaluates it until there is machine code. */
#include "batch.h"

int interpret_kernel(Kernel *kernel, double *const *ports)
{
  PyGILState_STATE state = PyGILState_Ensure();
  /* The thread that has this lock may have released the interpreter's, inside CasADi. */
  if (!PyThread_acquire_lock(kernel->lock, NOWAIT_LOCK)) {
    Py_BEGIN_ALLOW_THREADS PyThread_acquire_lock(kernel->lock, WAIT_LOCK);
    Py_END_ALLOW_THREADS
  }
  for (int i = 0; i < kernel->inputs; i++)
    memcpy(kernel->own[i], ports[i], kernel->size[i] * sizeof(double));
  PyObject *nothing = PyObject_CallNoArgs(kernel->interpret);
  for (int i = kernel->inputs; nothing != NULL && i < kernel->ports; i++)
    memcpy(ports[i], kernel->own[i], kernel->size[i] * sizeof(double));
  PyThread_release_lock(kernel->lock);
  Py_XDECREF(nothing);
  PyGILState_Release(state);
  return nothing != NULL;
}

/* The numbers of inputs, and of outputs if these are given; 0 if an argument is no such vector. */
static int find_ports(const Kernel *kernel, PyObject *const *given, Py_ssize_t count,
                      double **ports)
{
  if (count != kernel->inputs && count != kernel->ports) return 0;
  for (int i = 0; i < count; i++) {
    ports[i] = vector_of(given[i], kernel->size[i]);
    if (ports[i] == NULL
        || (i >= kernel->inputs && !PyArray_ISWRITEABLE((PyArrayObject *)given[i])))
      return 0;
  }
  return 1;
}

static PyObject *evaluate_ports(Kernel *kernel, Py_ssize_t given, double **ports)
{
  if (given == kernel->ports && given != kernel->inputs) {
    if (!run_kernel(kernel, ports)) return NULL;
    Py_RETURN_NONE;
  }
  PyObject *result = PyTuple_New(kernel->ports - given);
  for (int i = kernel->inputs; result != NULL && i < kernel->ports; i++) {
    PyObject *output = new_vector(kernel->size[i]);
    if (output == NULL) {
      Py_CLEAR(result);
      break;
    }
    ports[i] = PyArray_DATA((PyArrayObject *)output);
    PyTuple_SET_ITEM(result, i - kernel->inputs, output);
  }
  if (result != NULL && !run_kernel(kernel, ports)) Py_CLEAR(result);
  return result;
}

/* Inputs that are no float64 vectors are converted by Python, which raises if it cannot. */
static PyObject *evaluate_converted(Kernel *kernel, PyObject *const *arguments, size_t flags,
                                    PyObject *names)
{
  double *ports[MAX_PORTS];
  PyObject *converted = PyObject_Vectorcall(kernel->convert, arguments, flags, names);
  if (converted == NULL) return NULL;
  PyObject *answer = NULL;
  if (PyTuple_CheckExact(converted) && PyTuple_GET_SIZE(converted) == kernel->inputs
      && find_ports(kernel, ((PyTupleObject *)converted)->ob_item, kernel->inputs, ports))
    answer = evaluate_ports(kernel, kernel->inputs, ports);
  else
    PyErr_SetString(PyExc_TypeError, "inputs were not converted to float64 vectors");
  Py_DECREF(converted);
  return answer;
}

static PyObject *kernel_vectorcall(PyObject *self, PyObject *const *arguments, size_t flags,
                                   PyObject *names)
{
  Kernel *kernel = (Kernel *)self;
  Py_ssize_t given = PyVectorcall_NARGS(flags);
  double *ports[MAX_PORTS];
  if (names == NULL && find_ports(kernel, arguments, given, ports))
    return evaluate_ports(kernel, given, ports);
  return evaluate_converted(kernel, arguments, flags, names);
}

static int set_arrays(Kernel *kernel, PyObject *inputs, PyObject *outputs)
{
  Py_ssize_t count = PyTuple_GET_SIZE(inputs), ports = count + PyTuple_GET_SIZE(outputs);
  if (ports > MAX_PORTS) {
    PyErr_Format(PyExc_ValueError, "%zd inputs and outputs are more than %d", ports, MAX_PORTS);
    return 0;
  }
  kernel->inputs = (int)count;
  kernel->ports = (int)ports;
  kernel->arrays = PySequence_Concat(inputs, outputs);
  for (Py_ssize_t i = 0; kernel->arrays != NULL && i < ports; i++) {
    PyObject *array = PyTuple_GET_ITEM(kernel->arrays, i);
    kernel->size[i] = length_of(array);
    kernel->own[i] = vector_of(array, kernel->size[i]);
    if (kernel->own[i] == NULL || !PyArray_ISWRITEABLE((PyArrayObject *)array)) {
      PyErr_SetString(PyExc_ValueError, "inputs and outputs must be writeable float64 vectors");
      return 0;
    }
  }
  return kernel->arrays != NULL;
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
  PyObject *inputs, *outputs, *interpret, *want_batch, *convert;
  if (!PyArg_ParseTuple(arguments, "O!O!OOO:Kernel", &PyTuple_Type, &inputs, &PyTuple_Type,
                        &outputs, &interpret, &want_batch, &convert))
    return NULL;
  Kernel *kernel = (Kernel *)type->tp_alloc(type, 0);
  if (kernel == NULL) return NULL;
  kernel->vectorcall = kernel_vectorcall;
  kernel->interpret = Py_NewRef(interpret);
  kernel->want_batch = Py_NewRef(want_batch);
  kernel->convert = Py_NewRef(convert);
  kernel->code = PyList_New(0);
  kernel->lock = PyThread_allocate_lock();
  if (kernel->code == NULL || kernel->lock == NULL || !set_arrays(kernel, inputs, outputs)) {
    if (!PyErr_Occurred()) PyErr_NoMemory();
    Py_CLEAR(kernel);
  }
  return (PyObject *)kernel;
}

static void free_code(PyObject *capsule)
{
  PyMem_Free(PyCapsule_GetPointer(capsule, NULL));
}

static void kernel_dealloc(PyObject *self)
{
  Kernel *kernel = (Kernel *)self;
  Py_XDECREF(kernel->arrays);
  Py_XDECREF(kernel->interpret);
  Py_XDECREF(kernel->want_batch);
  Py_XDECREF(kernel->convert);
  Py_XDECREF(kernel->code);
  if (kernel->lock != NULL) PyThread_free_lock(kernel->lock);
  Py_TYPE(self)->tp_free(self);
}

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

static PyObject *kernel_compiled(PyObject *self, void *unused)
{
  return PyBool_FromLong(((Kernel *)self)->evaluate != NULL);
}

static PyObject *kernel_batch_compiled(PyObject *self, void *unused)
{
  return PyBool_FromLong(((Kernel *)self)->batch != NULL);
}

static PyObject *kernel_use(PyObject *self, PyObject *arguments)
{
  Kernel *kernel = (Kernel *)self;
  unsigned long long address;
  PyObject *owner;
  if (!PyArg_ParseTuple(arguments, "KO:use", &address, &owner)
      || PyList_Append(kernel->code, owner) < 0)
    return NULL;
  kernel->evaluate = (Evaluate)(uintptr_t)address;
  Py_RETURN_NONE;
}

static PyObject *kernel_use_batch(PyObject *self, PyObject *arguments)
{
  Kernel *kernel = (Kernel *)self;
  unsigned long long address, checked, constants;
  BatchCode code;
  PyObject *owner;
  if (!PyArg_ParseTuple(arguments, "KKKnndO:use_batch", &address, &checked, &constants,
                        &code.memory, &code.together, &code.instructions, &owner))
    return NULL;
  if (code.memory < 0 || code.together < 1)
    return PyErr_Format(PyExc_ValueError, "no memory, or no rows");
  code.evaluate = (EvaluateRows)(uintptr_t)address;
  code.checked = (EvaluateRows)(uintptr_t)checked;
  code.constants = (const double *)(uintptr_t)constants;
  BatchCode *kept = PyMem_Malloc(sizeof *kept);
  if (kept == NULL) return PyErr_NoMemory();
  *kept = code;
  PyObject *capsule = PyCapsule_New(kept, NULL, free_code);
  if (capsule == NULL) PyMem_Free(kept);
  int good = capsule != NULL && PyList_Append(kernel->code, capsule) == 0
             && PyList_Append(kernel->code, owner) == 0;
  Py_XDECREF(capsule);
  if (!good) return NULL;
  kernel->batch = kept;
  Py_RETURN_NONE;
}

static PyObject *kernel_withdraw(PyObject *self, PyObject *unused)
{
  ((Kernel *)self)->evaluate = NULL;
  ((Kernel *)self)->batch = NULL;
  Py_RETURN_NONE;
}

static PyMethodDef kernel_methods[] = {
    {"use", kernel_use, METH_VARARGS, "use(address, owner): machine code for one state."},
    {"use_batch", kernel_use_batch, METH_VARARGS,
     "use_batch(address, address of what checks loops too or 0, address of constants, numbers of"
     " memory, rows at once, instructions, owner): machine code for batches."},
    {"batch", (PyCFunction)(void (*)(void))kernel_batch, METH_FASTCALL,
     "batch(*inputs, *outputs): evaluate rows of float64 numbers into the given rows; whether all"
     " outputs are finite."},
    {"withdraw", kernel_withdraw, METH_NOARGS,
     "Stop using machine code. It stays in memory, as another thread may be running it."},
    {NULL},
};

static PyGetSetDef kernel_properties[] = {
    {"compiled", kernel_compiled, NULL, "Whether machine code evaluates one state.", NULL},
    {"batch_compiled", kernel_batch_compiled, NULL, "Whether machine code evaluates batches.",
     NULL},
    {"sizes", kernel_sizes, NULL, "Of inputs, then of outputs.", NULL},
    {NULL},
};

PyTypeObject KernelType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros.engine.core.Kernel",
    .tp_doc = "Kernel(input arrays, output arrays, interpret, want_batch, convert): a program.\n\n"
              "interpret() evaluates the arrays; want_batch(rows) asks for machine code for\n"
              "batches; convert(*arguments) converts other objects to float64 vectors.",
    .tp_basicsize = sizeof(Kernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Kernel, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = kernel_new,
    .tp_dealloc = kernel_dealloc,
    .tp_methods = kernel_methods,
    .tp_getset = kernel_properties,
};
