/* A public method at one state: its arguments checked, its kernels one after the other. */
#include "checked_call.h"

#include <float.h>

static int read_damping(PyObject *given, double *damping)
{
  *damping = 0.0;
  if (given == NULL) return 1;
  if (!PyFloat_CheckExact(given)) return 0;
  *damping = PyFloat_AS_DOUBLE(given);
  return *damping >= 0.0 && isfinite(*damping);
}

static int read_arguments(CheckedCall *call, PyObject *const *given, const double **slots)
{
  for (int i = 0; i < call->arguments; i++) {
    switch (call->kinds[i]) {
    case 'q':
      if (!read_position(call->reader, given[i], call->slot[i].fixed, &slots[i])) return 0;
      break;
    case 'v':
      if (!read_velocity(call->reader, given[i], call->slot[i].fixed, &slots[i])) return 0;
      break;
    case 'f':
      if (!read_force(call->reader, call->forces, given[i], slots[0], call->slot[i].fixed,
                      &slots[i]))
        return 0;
      break;
    case 'd':
      slots[i] = call->slot[i].fixed;
      if (!read_damping(given[i], call->slot[i].fixed)) return 0;
      break;
    case 'w':
      slots[i] = call->slot[i].fixed;
      if (!read_wrenches(call->reader, given[i], call->slot[i].fixed, call->slot[i].size)) return 0;
      break;
    default:
      slots[i] = vector_of(given[i], call->slot[i].size);
      if (slots[i] == NULL || !all_within(slots[i], call->slot[i].size, call->reader->largest))
        return 0;
    }
  }
  return 1;
}

int is_sound(const CheckedCall *call, double *const *slots)
{
  if (call->finite < 0) return 1;
  const double *values = slots[call->finite];
  npy_intp count = call->slot[call->finite].size;
  if (!all_within(values, count, DBL_MAX)) return 0;
  if (call->missed < 0) return 1;
  double largest = 1.0;
  for (npy_intp i = 0; i < count; i++) largest = larger(fabs(values[i]), largest);
  return all_within(slots[call->missed], call->slot[call->missed].size,
                    call->reader->on_loops * largest);
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

PyObject *answer_of(const CheckedCall *call, PyObject *const *arrays, PyObject *last)
{
  PyObject *values[MOST_RESULTS + 1];
  memcpy(values, arrays, call->results * sizeof *values);
  values[call->results] = last;
  if (call->make != NULL) return new_record(call->make, call->fields, values);
  if (call->results == 1) return Py_NewRef(arrays[0]);
  return PyTuple_Pack(2, arrays[0], arrays[1]);
}

static PyObject *checked_vectorcall(PyObject *self, PyObject *const *given, size_t flags,
                                    PyObject *names)
{
  CheckedCall *call = (CheckedCall *)self;
  double *slots[MOST_SLOTS], *ports[MOST_PORTS];
  PyObject *arrays[MOST_RESULTS] = {NULL}, *answer = NULL;
  PyObject *ordered[MOST_ARGUMENTS];
  Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (count + call->optional < call->arguments || count > call->arguments || names != NULL)
    Py_RETURN_NONE;
  for (int i = 0; i < call->arguments; i++) ordered[i] = i < count ? given[i] : NULL;

  /* From here to the last kernel nothing of Python runs that could call this again: `fixed` is
       shared. So arrays are made first. */
  for (int i = 0; i < call->results; i++) {
    Result *result = &call->result[i];
    arrays[i] = take_array(&result->spare, result->dimensions, result->shape);
    if (arrays[i] == NULL) goto end;
  }
  for (int i = 0; i < call->slots; i++) slots[i] = call->slot[i].fixed;
  for (int i = 0; i < call->results; i++)
    slots[call->result[i].slot] = PyArray_DATA((PyArrayObject *)arrays[i]);
  int good = read_arguments(call, ordered, (const double **)slots);
  for (int k = 0; good && k < call->steps; k++) {
    const Step *step = &call->step[k];
    if (step->kernel == NULL) {
      add_slots(step, slots, call->slot[step->slots[2]].size);
      continue;
    }
    for (int i = 0; i < step->kernel->ports; i++) ports[i] = slots[step->slots[i]];
    good = !step->kernel->withdrawn;
    if (good) step->kernel->evaluate(ports);
  }
  if (!good)
    answer = call->optional ? Py_NewRef(Py_None) : call_with_rows(call, ordered);
  else if (!is_sound(call, slots))
    answer = Py_NewRef(Py_None);
  else if (solve_results(call, call->branches, slots))
    answer = answer_of(call, arrays, ordered[call->arguments - 1]);
  else if (call->optional && ordered[call->arguments - 1] == NULL) {
    Py_CLEAR(arrays[0]);
    answer = answer_of(call, arrays, NULL);
  } else
    answer = Py_NewRef(Py_None);
end:
  for (int i = 0; i < call->results; i++) Py_XDECREF(arrays[i]);
  return answer;
}

/* A step: a kernel, or the sign of a sum, and its slots. */
static int set_step(CheckedCall *call, Step *step, PyObject *given)
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

static int set_steps(CheckedCall *call, PyObject *steps)
{
  call->steps = (int)PyTuple_GET_SIZE(steps);
  for (int k = 0; k < call->steps; k++)
    if (!set_step(call, &call->step[k], PyTuple_GET_ITEM(steps, k))) return 0;
  return 1;
}

static int set_results(CheckedCall *call, PyObject *results)
{
  call->results = (int)PyTuple_GET_SIZE(results);
  for (int i = 0; i < call->results; i++) {
    Result *result = &call->result[i];
    npy_intp columns = 0;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(results, i), "in|n", &result->slot, &result->shape[0],
                          &columns))
      return 0;
    result->dimensions = columns ? 2 : 1;
    result->shape[1] = columns;
    if (result->slot < call->arguments || result->slot >= call->slots
        || result->shape[0] * (columns ? columns : 1) != call->slot[result->slot].size)
      return 0;
  }
  return 1;
}

static int set_branches(CheckedCall *call, PyObject *parents)
{
  npy_intp n = length_of(parents);
  int matrices = call->least != 0.0 ? 2 : call->results;
  if (call->mass_matrix < 0) return 1;
  if (n < 0 || call->results < matrices || (call->least != 0.0 && !call->optional)) return 0;
  for (int i = 0; i < matrices; i++)
    if (call->slot[call->result[i].slot].size != n * n) return 0;
  if (call->slot[call->mass_matrix].size != n * n) return 0;
  call->branches = new_branches(parents, n, call->least != 0.0 ? 1 : matrices);
  return call->branches != NULL;
}

/* Numbers that stay, by slot; what else nobody writes is zero. */
static int set_constants(CheckedCall *call, PyObject *constants)
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
    memcpy(call->slot[slot].fixed, numbers, call->slot[slot].size * sizeof *numbers);
  }
  return 1;
}

static int set_memory(CheckedCall *call, PyObject *sizes)
{
  npy_intp total = 1;
  for (int i = 0; i < call->slots; i++) {
    call->slot[i].size = PyLong_AsSsize_t(PyTuple_GET_ITEM(sizes, i));
    if (call->slot[i].size < 0) return 0;
    char kind = i < call->arguments ? call->kinds[i] : 'x';
    if ((kind == 'q' && call->slot[i].size != call->reader->nq)
        || (kind == 'f' && (call->slot[i].size != call->reader->ny || *call->kinds != 'q'))
        || (kind == 'v' && call->slot[i].size != call->reader->ny)
        || (kind == 'd' && (call->slot[i].size != 1 || i != call->arguments - 1)))
      return 0;
    call->optional |= kind == 'd';
    total += call->slot[i].size;
  }
  call->memory = PyMem_Calloc(total, sizeof *call->memory);
  if (call->memory == NULL) return 0;
  double *next = call->memory;
  for (int i = 0; i < call->slots; i++) {
    call->slot[i].fixed = next;
    next += call->slot[i].size;
  }
  return 1;
}

static PyObject *checked_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
  PyObject *reader, *sizes, *steps, *results, *make, *fields, *parents, *constants, *forces;
  const char *kinds;
  int finite, missed, mass_matrix;
  double least;
  if (!PyArg_ParseTuple(arguments, "O!sO!O!O!O!ii(OO!)(iOd)O:CheckedCall", &ReaderType, &reader,
                        &kinds, &PyTuple_Type, &sizes, &PyTuple_Type, &steps, &PyTuple_Type,
                        &results, &PyTuple_Type, &constants, &finite, &missed, &make, &PyTuple_Type,
                        &fields, &mass_matrix, &parents, &least, &forces))
    return NULL;
  CheckedCall *call = (CheckedCall *)type->tp_alloc(type, 0);
  if (call == NULL) return NULL;
  call->vectorcall = checked_vectorcall;
  call->reader = (Reader *)Py_NewRef(reader);
  call->make = PyType_Check(make) ? Py_NewRef(make) : NULL;
  call->fields = Py_NewRef(fields);
  call->least = least;
  if (turns_forces(call->reader, forces)) call->forces = (Kernel *)Py_NewRef(forces);
  call->arguments = (int)strlen(kinds);
  call->slots = (int)PyTuple_GET_SIZE(sizes);
  call->finite = finite;
  call->missed = missed;
  call->mass_matrix = mass_matrix;
  int good = call->arguments <= MOST_ARGUMENTS && call->arguments <= call->slots
             && call->slots <= MOST_SLOTS && finite < call->slots && missed < call->slots
             && mass_matrix < call->slots && PyTuple_GET_SIZE(steps) <= MOST_STEPS
             && PyTuple_GET_SIZE(results) >= 1 && PyTuple_GET_SIZE(results) <= MOST_RESULTS
             && (call->make == NULL
                 || PyTuple_GET_SIZE(fields) == PyTuple_GET_SIZE(results) + (least != 0.0));
  if (good) strcpy(call->kinds, kinds);
  if (!good || !set_memory(call, sizes) || !set_steps(call, steps) || !set_results(call, results)
      || !set_branches(call, parents) || !set_constants(call, constants)) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_ValueError, "kernels and slots do not belong together");
    Py_DECREF(call);
    return NULL;
  }
  return (PyObject *)call;
}

static void checked_dealloc(PyObject *self)
{
  CheckedCall *call = (CheckedCall *)self;
  for (int k = 0; k < call->steps; k++) Py_XDECREF(call->step[k].kernel);
  for (int i = 0; i < call->results; i++) clear_spare(&call->result[i].spare);
  Py_XDECREF(call->reader);
  Py_XDECREF(call->forces);
  Py_XDECREF(call->make);
  Py_XDECREF(call->fields);
  PyMem_Free(call->branches);
  PyMem_Free(call->memory);
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject CheckedCallType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros._native.calls.CheckedCall",
    .tp_doc = "One method at one state, or None; see robot/native_calls.py.",
    .tp_basicsize = sizeof(CheckedCall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(CheckedCall, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = checked_new,
    .tp_dealloc = checked_dealloc,
};
