/* Robot.constrained_forward_dynamics for some contacts whose wanted accelerations are constant. */
#include "engine.h"

#include <float.h>

enum { INPUTS = 6, START = 5, YDD = 0, FORCES = 1, ALONG = 2, HEALTH = 3, OUTPUTS = 4 };

/* When iterations end. */
typedef struct {
  double tolerance, change; /* what contacts may miss; how much ydd may change, over its size */
  long each, most;          /* iterations of a call of the kernel, and in all */
} Iterations;

typedef struct {
  PyObject_HEAD vectorcallfunc vectorcall;
  StateValidator *validator;
  Kernel *forces;                 /* q, forces on all joints -> those on y; or NULL */
  Kernel *kernel;                 /* q, yd, tau, axes, desired, start, maybe points ->
                                      ydd, forces, along, health */
  double *memory;                 /* room for all but results, and for loops */
  npy_intp numbers;               /* that it has */
  npy_intp offset[MAX_PORTS + 1]; /* of ports there, and of loops */
  int busy;                /* another thread evaluates in it, by CasADi: a call then takes a copy */
  Iterations until;        /* where a call does not say otherwise */
  PyObject *make, *fields; /* of the answer */
  PyObject *contacts;      /* by whose identity this is found: they must live */
  ArrayPool ydd, wrenches; /* of the answer */
} ContactCall;

/* Read the arguments tolerance and max_iterations, if they are given. */
static int read_stop(PyObject *const *given, Py_ssize_t count, Iterations *until)
{
  if (count > 3 && given[3] != Py_None) {
    if (!PyFloat_CheckExact(given[3])) return 0;
    until->tolerance = PyFloat_AS_DOUBLE(given[3]);
  }
  if (count > 4 && given[4] != Py_None) {
    int overflow;
    if (!PyLong_CheckExact(given[4])) return 0;
    until->most = PyLong_AsLongAndOverflow(given[4], &overflow);
  }
  return until->tolerance > 0.0 && until->most >= 1;
}

/* Call the kernel, each time from the forces of the last, until contacts are satisfied and ydd is
   at rest: either alone comes long before the motion near a singularity. `start` is where the first
   call begins, and is overwritten. NOT_FINITE where the mass matrix is singular. */
static Status iterate(const Kernel *kernel, double **ports, const Iterations *until, long *taken,
                      int *converged)
{
  int first = kernel->inputs;
  const npy_intp *size = kernel->size + first;
  double **out = ports + first;
  *taken = *converged = 0;
  while (!*converged && *taken < until->most) {
    if (*taken > 0) memcpy(ports[START], out[ALONG], size[ALONG] * sizeof(double));
    if (!run_kernel(kernel, ports)) return FAILED;
    if (!all_within(out[YDD], size[YDD], DBL_MAX)
        || !all_within(out[FORCES], size[FORCES], DBL_MAX))
      return NOT_FINITE;
    double largest = 1.0;
    for (npy_intp i = 0; i < size[YDD]; i++) largest = larger(fabs(out[YDD][i]), largest);
    *taken += until->each;
    *converged = out[HEALTH][0] <= until->tolerance && out[HEALTH][1] <= until->change * largest;
  }
  return GOOD;
}

/* The same for arrays of Python: inputs, then outputs. */
PyObject *iterate_contacts(PyObject *self, PyObject *arguments)
{
  PyObject *given, *arrays;
  Iterations until;
  double *ports[MAX_PORTS];
  long taken;
  int converged;
  if (!PyArg_ParseTuple(arguments, "O!O!ddll:iterate_contacts", &KernelType, &given, &PyTuple_Type,
                        &arrays, &until.tolerance, &until.change, &until.each, &until.most))
    return NULL;
  const Kernel *kernel = (Kernel *)given;
  int fit = PyTuple_GET_SIZE(arrays) == kernel->ports && kernel->inputs >= INPUTS
            && kernel->ports == kernel->inputs + OUTPUTS && until.each > 0
            && kernel->size[START] == kernel->size[kernel->inputs + ALONG]
            && kernel->size[kernel->inputs + HEALTH] == 2;
  for (int i = 0; fit && i < kernel->ports; i++) {
    PyObject *array = PyTuple_GET_ITEM(arrays, i);
    ports[i] = vector_of(array, kernel->size[i]);
    fit = ports[i] != NULL
          && ((i < kernel->inputs && i != START) || PyArray_ISWRITEABLE((PyArrayObject *)array));
  }
  if (!fit) return PyErr_Format(PyExc_ValueError, "kernel and arrays do not belong together");
  const Status status = iterate(kernel, ports, &until, &taken, &converged);
  if (status != GOOD) return reject(status, -1);
  return Py_BuildValue("lO", taken, converged ? Py_True : Py_False);
}

static PyObject *motion_of(const ContactCall *call, PyObject *ydd, PyObject *forces,
                           double residual, long iterations)
{
  PyObject *values[] = {ydd, forces, PyFloat_FromDouble(residual), PyLong_FromLong(iterations),
                        Py_True};
  PyObject *answer = NULL;
  if (values[2] != NULL && values[3] != NULL) answer = new_record(call->make, call->fields, values);
  Py_XDECREF(values[2]);
  Py_XDECREF(values[3]);
  return answer;
}

/* Evaluate a call in some memory. */
static PyObject *evaluate_contacts(ContactCall *call, PyObject *const *given, double *memory,
                                   const Iterations *until, PyObject *ydd, PyObject *forces)
{
  const Kernel *kernel = call->kernel;
  const StateValidator *validator = call->validator;
  double *ports[MAX_PORTS];
  const double *q, *yd, *tau;
  int first = kernel->inputs;
  for (int i = 0; i < kernel->ports; i++) ports[i] = memory + call->offset[i];
  ports[first + YDD] = PyArray_DATA((PyArrayObject *)ydd);
  ports[first + FORCES] = PyArray_DATA((PyArrayObject *)forces);
  LoopMemory loops = loop_memory(validator, memory + call->offset[kernel->ports]);
  Status status = read_position(validator, &loops, given[0], ports[0], &q);
  if (status == GOOD) status = read_velocity(validator, given[1], ports[1], &yd);
  if (status == GOOD) status = read_force(validator, call->forces, given[2], q, ports[2], &tau);
  if (status != GOOD) return reject(status, -1);
  ports[0] = (double *)q;
  ports[1] = (double *)yd;
  ports[2] = (double *)tau;
  long iterations;
  int converged;
  memset(ports[START], 0, kernel->size[START] * sizeof(double));
  status = iterate(kernel, ports, until, &iterations, &converged);
  if (status == GOOD && !converged) status = NOT_FINITE; /* Python goes on otherwise */
  if (status != GOOD) return reject(status, -1);
  return motion_of(call, ydd, forces, ports[first + HEALTH][0], iterations);
}

static PyObject *contact_vectorcall(PyObject *self, PyObject *const *given, size_t flags,
                                    PyObject *names)
{
  ContactCall *call = (ContactCall *)self;
  const Kernel *kernel = call->kernel;
  Py_ssize_t count = PyVectorcall_NARGS(flags);
  Iterations until = call->until;
  if (count < 3 || count > 5 || names != NULL || !read_stop(given, count, &until))
    return reject(UNREAD, 3);
  npy_intp shape[] = {kernel->size[kernel->inputs + FORCES] / 6, 6};
  PyObject *ydd = take_array(&call->ydd, 1, &call->validator->ny), *answer = NULL;
  PyObject *forces = take_array(&call->wrenches, 2, shape);
  double *memory = call->memory;
  int copied = call->busy;
  if (copied) {
    memory = PyMem_Malloc(call->numbers * sizeof *memory);
    if (memory != NULL)
      memcpy(memory, call->memory, call->numbers * sizeof *memory);
    else
      PyErr_NoMemory();
  }
  call->busy = 1;
  if (ydd != NULL && forces != NULL && memory != NULL)
    answer = evaluate_contacts(call, given, memory, &until, ydd, forces);
  if (copied)
    PyMem_Free(memory);
  else
    call->busy = 0;
  Py_XDECREF(ydd);
  Py_XDECREF(forces);
  return answer;
}

/* Whether the sizes of a kernel are those of contacts on this robot. */
static int fits(const StateValidator *validator, const Kernel *kernel, Py_ssize_t constants)
{
  const npy_intp *size = kernel->size, *out = size + kernel->inputs;
  return kernel->inputs == 3 + constants && kernel->ports == kernel->inputs + OUTPUTS
         && kernel->inputs >= INPUTS && size[0] == validator->nq && size[1] == validator->ny
         && size[2] == validator->ny && out[YDD] == validator->ny && out[FORCES] % 6 == 0
         && out[ALONG] == size[INPUTS - 1] && out[HEALTH] == 2;
}

/* Allocate memory for every port, and copy the constant inputs: axes, desired, start, points. */
static int set_ports(ContactCall *call, PyObject *constants)
{
  const Kernel *kernel = call->kernel;
  for (int i = 0; i < kernel->ports; i++) call->offset[i + 1] = call->offset[i] + kernel->size[i];
  call->numbers = call->offset[kernel->ports] + loop_numbers(call->validator);
  call->memory = PyMem_Calloc(call->numbers, sizeof *call->memory);
  if (call->memory == NULL) return 0;
  for (int i = 3; i < kernel->inputs; i++) {
    const double *numbers = vector_of(PyTuple_GET_ITEM(constants, i - 3), kernel->size[i]);
    if (numbers == NULL) return 0;
    memcpy(call->memory + call->offset[i], numbers, kernel->size[i] * sizeof *numbers);
  }
  return 1;
}

static PyObject *contact_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
  PyObject *validator, *kernel, *forces, *constants, *make, *fields, *contacts;
  Iterations until;
  if (!PyArg_ParseTuple(arguments, "O!O!OO!ddllO!O!O:ContactCall", &StateValidatorType, &validator,
                        &KernelType, &kernel, &forces, &PyTuple_Type, &constants, &until.tolerance,
                        &until.change, &until.each, &until.most, &PyType_Type, &make, &PyTuple_Type,
                        &fields, &contacts))
    return NULL;
  ContactCall *call = (ContactCall *)type->tp_alloc(type, 0);
  if (call == NULL) return NULL;
  call->vectorcall = contact_vectorcall;
  call->validator = (StateValidator *)Py_NewRef(validator);
  call->kernel = (Kernel *)Py_NewRef(kernel);
  if (turns_forces(call->validator, forces)) call->forces = (Kernel *)Py_NewRef(forces);
  call->until = until;
  call->make = Py_NewRef(make);
  call->fields = Py_NewRef(fields);
  call->contacts = Py_NewRef(contacts);
  if (PyTuple_GET_SIZE(fields) != 5 || until.each < 1
      || !fits(call->validator, call->kernel, PyTuple_GET_SIZE(constants))
      || !set_ports(call, constants)) {
    PyErr_SetString(PyExc_ValueError, "kernel and contacts do not belong together");
    Py_CLEAR(call);
  }
  return (PyObject *)call;
}

static void contact_dealloc(PyObject *self)
{
  ContactCall *call = (ContactCall *)self;
  Py_XDECREF(call->validator);
  Py_XDECREF(call->kernel);
  Py_XDECREF(call->forces);
  Py_XDECREF(call->make);
  Py_XDECREF(call->fields);
  Py_XDECREF(call->contacts);
  clear_pool(&call->ydd);
  clear_pool(&call->wrenches);
  PyMem_Free(call->memory);
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject ContactCallType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros.engine.core.ContactCall",
    .tp_doc = "Dynamics with some contacts at one state, or a Rejection; see robot/calls.py.",
    .tp_basicsize = sizeof(ContactCall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(ContactCall, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = contact_new,
    .tp_dealloc = contact_dealloc,
};
