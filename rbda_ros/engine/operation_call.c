/* An operation at one state: arguments are validated, then kernels are evaluated in their order. */
#include "operation_call.h"

#include <float.h>

static int read_damping(PyObject *given, double *damping)
{
  *damping = 0.0;
  if (given == NULL) return 1;
  if (!PyFloat_CheckExact(given)) return 0;
  *damping = PyFloat_AS_DOUBLE(given);
  return *damping >= 0.0 && isfinite(*damping);
}

static int read_number(const StateValidator *validator, PyObject *given, double *number)
{
  if (!PyFloat_CheckExact(given)) return 0;
  *number = PyFloat_AS_DOUBLE(given);
  return all_within(number, 1, validator->largest);
}

Status read_argument(const OperationCall *call, int i, LoopMemory *memory, const Kernel *forces,
                     PyObject *given, const double *q, double *into, const double **numbers)
{
  const StateValidator *validator = call->validator;
  npy_intp size = call->slot[i].size;
  *numbers = into;
  switch (call->kinds[i]) {
  case 'q':
    return read_position(validator, memory, given, into, numbers);
  case 'v':
    return read_velocity(validator, given, into, numbers);
  case 'f':
    return read_force(validator, forces, given, q, into, numbers);
  case 's':
    return read_number(validator, given, into) ? GOOD : UNREAD;
  case 'd':
    return read_damping(given, into) ? GOOD : UNREAD;
  case 'w':
    return read_wrenches(validator, given, into, size);
  default:
    *numbers = vector_of(given, size);
    return *numbers != NULL && all_within(*numbers, size, validator->largest) ? GOOD : UNREAD;
  }
}

static Status read_arguments(const OperationCall *call, LoopMemory *memory, PyObject *const *given,
                             double **slots, int *argument)
{
  for (int i = 0; i < call->arguments; i++) {
    const double *read;
    *argument = i;
    Status status =
        read_argument(call, i, memory, call->forces, given[i], slots[0], slots[i], &read);
    if (status != GOOD) return status;
    slots[i] = (double *)read;
  }
  return GOOD;
}

Status check_results(const OperationCall *call, double *const *slots)
{
  if (call->finite < 0) return GOOD;
  const int missed = call->missed;
  if (missed < 0 && all_within(slots[call->finite], call->slot[call->finite].size, DBL_MAX))
    return GOOD;
  return judge_results(slots[call->finite], call->slot[call->finite].size,
                       missed < 0 ? NULL : slots[missed], missed < 0 ? 0 : call->slot[missed].size,
                       call->validator->on_loops);
}

double loops_missed(const OperationCall *call, double *const *slots)
{
  double most = 0.0;
  for (npy_intp i = 0; call->missed >= 0 && i < call->slot[call->missed].size; i++)
    most = larger(slots[call->missed][i], most);
  return most;
}

/* The inverse of a matrix that is certainly regular; `robot/results.py` inverts others. */
static int invert_result(const OperationCall *call, const LtlFactorization *ltl,
                         double *const *slots)
{
  npy_intp n = ltl->n;
  double *M = slots[call->mass_matrix], *inverse = slots[call->result[0].slot];
  double damping = *slots[call->arguments - 1], trace = 0.0, of_inverse = 0.0;
  double *row = M;
  for (npy_intp k = 0; k < n; k++, row += k) {
    memcpy(row, slots[call->result[1].slot] + k * n, (k + 1) * sizeof *row);
    row[k] += damping;
    trace += row[k];
  }
  if (!invert_ltl(ltl, M, inverse)) return 0;
  for (npy_intp k = 0; k < n; k++) of_inverse += inverse[k * n + k];
  return 1.0 > call->least * trace * of_inverse;
}

int solve_results(const OperationCall *call, const LtlFactorization *ltl, double *const *slots)
{
  if (call->mass_matrix < 0) return 1;
  if (call->least != 0.0) return invert_result(call, ltl, slots);
  double *H = slots[call->mass_matrix], *B[MAX_RESULTS];
  int last = call->results - 1;
  if (last == 0) return invert_ltl(ltl, H, slots[call->result[0].slot]);
  if (!factor_ltl(ltl, H)) return 0;
  for (int i = 0; i < last; i++) B[i] = slots[call->result[i].slot];
  solve_ltl(ltl, H, B, last, -1.0, slots[call->result[last].slot]);
  return 1;
}

PyObject *new_record(PyObject *type, PyObject *fields, PyObject *const *values)
{
  PyObject *record = PyType_GenericAlloc((PyTypeObject *)type, 0);
  for (Py_ssize_t i = 0; record != NULL && i < PyTuple_GET_SIZE(fields); i++)
    if (values[i] != NULL
        && PyObject_GenericSetAttr(record, PyTuple_GET_ITEM(fields, i), values[i]) < 0)
      Py_CLEAR(record);
  return record;
}

PyObject *answer_of(const OperationCall *call, PyObject *const *arrays, PyObject *last)
{
  PyObject *values[MAX_RESULTS + 1];
  memcpy(values, arrays, call->results * sizeof *values);
  values[call->results] = last;
  if (call->make != NULL) return new_record(call->make, call->fields, values);
  if (call->results == 1) return Py_NewRef(arrays[0]);
  PyObject *all = PyTuple_New(call->results);
  for (int i = 0; all != NULL && i < call->results; i++)
    PyTuple_SET_ITEM(all, i, Py_NewRef(arrays[i]));
  return all;
}

/* Replace results that are one number by floats. */
static int set_scalars(const OperationCall *call, PyObject **arrays)
{
  for (int i = 0; i < call->results; i++) {
    if (call->result[i].dimensions != 0 || arrays[i] == NULL) continue;
    const double *number = PyArray_DATA((PyArrayObject *)arrays[i]);
    Py_SETREF(arrays[i], PyFloat_FromDouble(*number));
    if (arrays[i] == NULL) return 0;
  }
  return 1;
}

static Status run_steps(const OperationCall *call, double *const *slots)
{
  double *ports[MAX_PORTS];
  for (int k = 0; k < call->steps; k++) {
    const Step *step = &call->step[k];
    if (step->kernel == NULL) {
      add_slots(step, slots, call->slot[step->slots[2]].size);
      continue;
    }
    for (int i = 0; i < step->kernel->ports; i++) ports[i] = slots[step->slots[i]];
    if (!run_kernel(step->kernel, ports)) return FAILED;
  }
  return check_results(call, slots);
}

/* The operation at one state, in the memory given. */
static PyObject *evaluate_one(OperationCall *call, PyObject *const *given, PyObject **arrays,
                              double *memory)
{
  double *slots[MAX_SLOTS];
  int argument = -1;
  for (int i = 0; i < call->slots; i++) slots[i] = memory + call->slot[i].offset;
  for (int i = 0; i < call->results; i++)
    slots[call->result[i].slot] = PyArray_DATA((PyArrayObject *)arrays[i]);
  LoopMemory loops = loop_memory(call->validator, memory + call->loops);
  Status status = read_arguments(call, &loops, given, slots, &argument);
  if (status == UNREAD)
    return call->optional ? reject(UNREAD, argument) : call_with_rows(call, given);
  if (status == GOOD) status = run_steps(call, slots);
  if (status == LOOPS_MISSED) return reject_value(status, -1, loops_missed(call, slots));
  if (status != GOOD) return reject(status, -1);
  if (call->plain) return Py_NewRef(arrays[0]);
  if (!solve_results(call, call->ltl, slots)) {
    if (!call->optional) return reject(SINGULAR, -1);
    Py_CLEAR(arrays[0]);
  }
  return set_scalars(call, arrays) ? answer_of(call, arrays, given[call->arguments - 1]) : NULL;
}

static PyObject *operation_vectorcall(PyObject *self, PyObject *const *given, size_t flags,
                                      PyObject *names)
{
  OperationCall *call = (OperationCall *)self;
  PyObject *arrays[MAX_RESULTS] = {NULL}, *answer = NULL;
  PyObject *ordered[MAX_ARGUMENTS];
  Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (count + call->optional < call->arguments || count > call->arguments || names != NULL)
    return PyErr_Format(PyExc_TypeError, "%zd arguments, not %d", count, call->arguments);
  if (count < call->arguments) { /* the last is left out */
    memcpy(ordered, given, count * sizeof *ordered);
    ordered[count] = NULL;
    given = ordered;
  }
  /* CasADi releases the interpreter lock, so another thread may come here meanwhile. */
  double *memory = call->memory;
  int copied = call->busy;
  if (copied) {
    memory = PyMem_Malloc(call->numbers * sizeof *memory);
    if (memory == NULL) return PyErr_NoMemory();
    memcpy(memory, call->memory, call->numbers * sizeof *memory);
  }
  call->busy = 1;
  int made = 0;
  for (; made < call->results; made++) {
    Result *result = &call->result[made];
    arrays[made] = take_array(&result->pool, result->dimensions, result->shape);
    if (arrays[made] == NULL) break;
  }
  if (made == call->results) answer = evaluate_one(call, given, arrays, memory);
  for (int i = 0; i < call->results; i++) Py_XDECREF(arrays[i]);
  if (copied)
    PyMem_Free(memory);
  else
    call->busy = 0;
  return answer;
}

/* A step: a kernel, or the sign of a sum, and its slots. */
static int set_step(OperationCall *call, Step *step, PyObject *given)
{
  PyObject *kernel, *slots;
  if (!PyArg_ParseTuple(given, "OO!", &kernel, &PyTuple_Type, &slots)) return 0;
  if (PyFloat_CheckExact(kernel))
    step->sign = PyFloat_AS_DOUBLE(kernel);
  else if (PyObject_TypeCheck(kernel, &KernelType))
    step->kernel = (Kernel *)Py_NewRef(kernel);
  else
    return 0;
  int ports = step->kernel == NULL ? 3 : step->kernel->ports;
  if (PyTuple_GET_SIZE(slots) != ports) return 0;
  for (int i = 0; i < ports; i++) {
    long slot = PyLong_AsLong(PyTuple_GET_ITEM(slots, i));
    if (slot < 0 || slot >= call->slots) return 0;
    step->slots[i] = (int)slot;
    npy_intp size = step->kernel == NULL ? call->slot[step->slots[0]].size : step->kernel->size[i];
    if (call->slot[slot].size != size) return 0;
  }
  return 1;
}

static int set_steps(OperationCall *call, PyObject *steps)
{
  call->steps = (int)PyTuple_GET_SIZE(steps);
  for (int k = 0; k < call->steps; k++)
    if (!set_step(call, &call->step[k], PyTuple_GET_ITEM(steps, k))) return 0;
  return 1;
}

static int set_results(OperationCall *call, PyObject *results)
{
  call->results = (int)PyTuple_GET_SIZE(results);
  for (int i = 0; i < call->results; i++) {
    Result *result = &call->result[i];
    npy_intp *shape = result->shape, size = 1;
    for (int k = 0; k < MAX_DIMENSIONS; k++) shape[k] = -1;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(results, i), "i|nnn", &result->slot, &shape[0],
                          &shape[1], &shape[2]))
      return 0;
    result->dimensions = 0;
    while (result->dimensions < MAX_DIMENSIONS && shape[result->dimensions] >= 0)
      size *= shape[result->dimensions++];
    if (result->slot < call->arguments || result->slot >= call->slots
        || size != call->slot[result->slot].size)
      return 0;
  }
  return 1;
}

static int set_ltl(OperationCall *call, PyObject *parents)
{
  npy_intp n = length_of(parents);
  int matrices = call->least != 0.0 ? 2 : call->results;
  if (call->mass_matrix < 0) return 1;
  if (n < 0 || call->results < matrices || (call->least != 0.0 && !call->optional)) return 0;
  for (int i = 0; i < matrices; i++)
    if (call->slot[call->result[i].slot].size != n * n) return 0;
  call->ltl = new_ltl(parents, n, call->least != 0.0 ? 1 : matrices);
  if (call->ltl == NULL) return 0;
  npy_intp by_rows = call->ltl->start[n] + n + READ_BEYOND;
  return call->slot[call->mass_matrix].size
         == (matrices > 1 && call->least == 0.0 ? n * n : by_rows);
}

/* Constants by slot. Other slots that nothing writes are zero. */
static int set_constants(OperationCall *call, PyObject *constants)
{
  for (int i = call->arguments; i < call->slots; i++) call->slot[i].constant = 1;
  for (int k = 0; k < call->steps; k++) {
    const Step *step = &call->step[k];
    int ports = step->kernel == NULL ? 3 : step->kernel->ports;
    for (int i = step->kernel == NULL ? 2 : step->kernel->inputs; i < ports; i++)
      call->slot[step->slots[i]].constant = 0;
  }
  for (int i = 0; i < call->results; i++) call->slot[call->result[i].slot].constant = 0;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(constants); k++) {
    int slot;
    PyObject *given;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(constants, k), "iO", &slot, &given)) return 0;
    if (slot < 0 || slot >= call->slots || !call->slot[slot].constant) return 0;
    const double *numbers = vector_of(given, call->slot[slot].size);
    if (numbers == NULL) return 0;
    memcpy(call->memory + call->slot[slot].offset, numbers,
           call->slot[slot].size * sizeof *numbers);
  }
  return 1;
}

static int set_memory(OperationCall *call, PyObject *sizes)
{
  for (int i = 0; i < call->slots; i++) {
    call->slot[i].size = PyLong_AsSsize_t(PyTuple_GET_ITEM(sizes, i));
    if (call->slot[i].size < 0) return 0;
    char kind = i < call->arguments ? call->kinds[i] : 'x';
    if ((kind == 'q' && call->slot[i].size != call->validator->nq)
        || (kind == 'f' && (call->slot[i].size != call->validator->ny || *call->kinds != 'q'))
        || (kind == 'v' && call->slot[i].size != call->validator->ny)
        || (kind == 's' && call->slot[i].size != 1)
        || (kind == 'd' && (call->slot[i].size != 1 || i != call->arguments - 1)))
      return 0;
    call->optional |= kind == 'd';
    call->slot[i].offset = call->loops;
    call->loops += call->slot[i].size;
  }
  call->numbers = call->loops + loop_numbers(call->validator);
  call->memory = PyMem_Calloc(call->numbers, sizeof *call->memory);
  if (call->memory == NULL) PyErr_NoMemory();
  return call->memory != NULL;
}

static PyObject *operation_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
  PyObject *validator, *sizes, *steps, *results, *make, *fields, *parents, *constants, *forces;
  const char *kinds;
  static char *names[] = {"validator",   "kinds",   "sizes",  "steps",  "results",
                          "constants",   "finite",  "missed", "make",   "fields",
                          "mass_matrix", "parents", "least",  "forces", NULL};
  OperationCall *call = (OperationCall *)type->tp_alloc(type, 0);
  if (call == NULL) return NULL;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!sO!O!O!O!iiOO!iOdO:OperationCall", names,
                                   &StateValidatorType, &validator, &kinds, &PyTuple_Type, &sizes,
                                   &PyTuple_Type, &steps, &PyTuple_Type, &results, &PyTuple_Type,
                                   &constants, &call->finite, &call->missed, &make, &PyTuple_Type,
                                   &fields, &call->mass_matrix, &parents, &call->least, &forces)) {
    Py_DECREF(call);
    return NULL;
  }
  call->vectorcall = operation_vectorcall;
  call->validator = (StateValidator *)Py_NewRef(validator);
  call->make = PyType_Check(make) ? Py_NewRef(make) : NULL;
  call->fields = Py_NewRef(fields);
  if (turns_forces(call->validator, forces)) call->forces = (Kernel *)Py_NewRef(forces);
  call->arguments = (int)strlen(kinds);
  call->slots = (int)PyTuple_GET_SIZE(sizes);
  int good = call->arguments <= MAX_ARGUMENTS && call->arguments <= call->slots
             && call->slots <= MAX_SLOTS && call->finite < call->slots && call->missed < call->slots
             && call->mass_matrix < call->slots && PyTuple_GET_SIZE(steps) <= MAX_STEPS
             && PyTuple_GET_SIZE(results) >= 1 && PyTuple_GET_SIZE(results) <= MAX_RESULTS
             && (call->make == NULL
                 || PyTuple_GET_SIZE(fields) == PyTuple_GET_SIZE(results) + (call->least != 0.0));
  if (good) strcpy(call->kinds, kinds);
  if (!good || !set_memory(call, sizes) || !set_steps(call, steps) || !set_results(call, results)
      || !set_ltl(call, parents) || !set_constants(call, constants)) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_ValueError, "kernels and slots do not belong together");
    Py_DECREF(call);
    return NULL;
  }
  call->plain = call->results == 1 && call->make == NULL && call->mass_matrix < 0
                && call->result[0].dimensions > 0;
  return (PyObject *)call;
}

static void operation_dealloc(PyObject *self)
{
  OperationCall *call = (OperationCall *)self;
  for (int k = 0; k < call->steps; k++) Py_XDECREF(call->step[k].kernel);
  for (int i = 0; i < call->results; i++) clear_pool(&call->result[i].pool);
  Py_XDECREF(call->validator);
  Py_XDECREF(call->forces);
  Py_XDECREF(call->make);
  Py_XDECREF(call->fields);
  PyMem_Free(call->ltl);
  PyMem_Free(call->memory);
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject OperationCallType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros.engine.core.OperationCall",
    .tp_doc = "One operation, at one state or many, or a Rejection; see robot/calls.py.",
    .tp_basicsize = sizeof(OperationCall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(OperationCall, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = operation_new,
    .tp_dealloc = operation_dealloc,
};
