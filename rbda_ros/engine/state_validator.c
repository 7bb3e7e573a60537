/* Checks positions and velocities of one robot: sizes, finite numbers, quaternions, loops. It takes
   contiguous float64 vectors; Python reads everything else, and explains rejections. */
#include "batch.h"

static Status on_loops(const StateValidator *validator, LoopMemory *memory, const double *q)
{
  memory->residual = 0.0;
  memory->worst = 1.0;
  if (!validator->has_loops) return GOOD;
  const npy_intp *size = validator->loop_state->size;
  double *phi = memory->phi, *conditioning = memory->conditioning;
  double *ports[] = {(double *)q, phi, conditioning};
  if (!run_kernel(validator->loop_state, ports)) return FAILED;
  return judge_loops(phi, size[1], conditioning, size[2], validator->on_loops, validator->singular,
                     &memory->residual, &memory->worst);
}

int normalize(const StateValidator *validator, double *q)
{
  return normalize_quaternions(q, validator->quaternions.index, validator->quaternions.count,
                               validator->quaternion_tolerance, validator->unit);
}

static int is_unit(const StateValidator *validator, const double *x)
{
  return fabs(quaternion_length(x) - 1.0) <= validator->quaternion_tolerance;
}

/* Whether `normalize` certainly changes nothing: a length is nearer to 1 than its square. */
static int is_normalized(const StateValidator *validator, const double *q)
{
  for (npy_intp k = 0; k < validator->quaternions.count; k++) {
    const double *x = q + validator->quaternions.index[k];
    const double square = ((x[0] * x[0] + x[1] * x[1]) + x[2] * x[2]) + x[3] * x[3];
    if (!(fabs(square - 1.0) <= validator->unit)) return 0;
  }
  return 1;
}

int all_units(const StateValidator *validator, const double *q)
{
  for (npy_intp k = 0; k < validator->quaternions.count; k++)
    if (!is_unit(validator, q + validator->quaternions.index[k])) return 0;
  return 1;
}

int known_units(const StateValidator *validator, const Indices *entries, const double *values)
{
  for (npy_intp k = 0; k < validator->quaternions.count; k++) {
    const npy_intp start = validator->quaternions.index[k];
    npy_intp at = 0;
    while (at < entries->count && entries->index[at] != start) at++;
    if (at + 3 >= entries->count || entries->index[at + 3] != start + 3) continue;
    if (!is_unit(validator, values + at)) return 0;
  }
  return 1;
}

static int evaluate_closure(const void *kernel, double *const *ports)
{
  return run_kernel(kernel, ports);
}

Status close_position(const StateValidator *validator, LoopMemory *memory, const Kernel *closure,
                      const Indices *entries, const double *values, const double *start, double *q)
{
  const ClosureRules rules = {.evaluate = evaluate_closure,
                              .kernel = closure,
                              .entries = entries->index,
                              .curved = validator->curved.index,
                              .parts = validator->parts.index,
                              .known = entries->count,
                              .curves = validator->curved.count,
                              .tries = validator->parts.count,
                              .nq = validator->nq,
                              .rows = closure->size[3],
                              .closed = validator->closed,
                              .nearby = validator->nearby};
  if (!known_units(validator, entries, values)) return UNREAD;
  Status status =
      close_in_parts(&rules, values, start, memory->known, memory->next, memory->phi, q);
  return status == GOOD && !normalize(validator, q) ? NOT_CLOSED : status;
}

npy_intp loop_numbers(const StateValidator *validator)
{
  const Kernel *loop_state = validator->loop_state;
  return 2 * validator->nq + 1 + (loop_state ? loop_state->size[1] + loop_state->size[2] : 0);
}

LoopMemory loop_memory(const StateValidator *validator, double *numbers)
{
  LoopMemory memory = {.phi = numbers, .conditioning = numbers, .next = numbers};
  if (validator->loop_state != NULL) {
    memory.conditioning = memory.phi + validator->loop_state->size[1];
    memory.next = memory.conditioning + validator->loop_state->size[2];
  }
  memory.known = memory.next + validator->nq;
  return memory;
}

PyObject *state_position(const StateValidator *validator, PyObject *state)
{
  PyObject *of = PyObject_GetAttrString(state, "of");
  PyObject *position = of == validator->identity ? PyObject_GetAttrString(state, "q") : NULL;
  Py_XDECREF(of);
  PyErr_Clear();
  return position;
}

Status read_position(const StateValidator *validator, LoopMemory *memory, PyObject *given,
                     double *into, const double **q)
{
  if (Py_TYPE(given) == validator->state_type) {
    PyObject *position = state_position(validator, given);
    *q = position == NULL ? NULL : vector_of(position, validator->nq);
    Py_XDECREF(position); /* the state, which cannot be changed, keeps it */
    return *q == NULL ? UNREAD : GOOD;
  }
  npy_intp size = length_of(given);
  const double *numbers = vector_of(given, size);
  if (numbers == NULL || !all_within(numbers, size, validator->largest_position)) return UNREAD;
  *q = into;
  if (size == validator->nq && is_normalized(validator, numbers))
    *q = numbers;
  else if (size == validator->nq) {
    memcpy(into, numbers, size * sizeof *into);
    if (!normalize(validator, into)) return UNREAD;
  } else if (size != validator->known.count || validator->closure == NULL)
    return UNREAD;
  else {
    Status status = close_position(validator, memory, validator->closure, &validator->known,
                                   numbers, validator->home, into);
    if (status != GOOD) return status;
  }
  return on_loops(validator, memory, *q);
}

Status read_velocity(const StateValidator *validator, PyObject *given, double *into,
                     const double **yd)
{
  npy_intp size = length_of(given);
  const double *numbers = vector_of(given, size);
  if (numbers == NULL || (size != validator->ny && size != validator->nv)
      || !all_within(numbers, size, validator->largest))
    return UNREAD;
  *yd = numbers;
  if (size != validator->ny) {
    const npy_intp *independent = validator->independent.index;
    for (Py_ssize_t i = 0; i < validator->ny; i++) into[i] = numbers[independent[i]];
    *yd = into;
  }
  return GOOD;
}

int copy_indices(Indices *indices, PyObject *given, npy_intp least, npy_intp limit)
{
  PyArrayObject *array = (PyArrayObject *)given;
  if (!PyArray_CheckExact(given) || PyArray_NDIM(array) != 1 || PyArray_TYPE(array) != NPY_INTP
      || !PyArray_ISCARRAY_RO(array))
    return 0;
  const npy_intp *index = PyArray_DATA(array);
  npy_intp count = PyArray_DIM(array, 0);
  for (npy_intp i = 0; i < count; i++)
    if (index[i] < least || index[i] >= limit) return 0;
  indices->index = PyMem_Malloc((count + 1) * sizeof *index);
  if (indices->index == NULL) return 0;
  memcpy(indices->index, index, count * sizeof *index);
  indices->count = count;
  return 1;
}

static int set_numbers(StateValidator *validator, PyObject *limits)
{
  const struct {
    const char *name;
    double *into;
  } all[] = {{"largest_position", &validator->largest_position},
             {"largest", &validator->largest},
             {"quaternion_tolerance", &validator->quaternion_tolerance},
             {"unit", &validator->unit},
             {"closed", &validator->closed},
             {"nearby", &validator->nearby},
             {"on_loops", &validator->on_loops},
             {"singular", &validator->singular},
             {"batch_near", &validator->batch_near},
             {"batch_block", &validator->batch_block}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    PyObject *number = PyDict_GetItemString(limits, all[i].name);
    if (number == NULL || !PyNumber_Check(number)) {
      PyErr_Format(PyExc_ValueError, "limits: no number for %s", all[i].name);
      return 0;
    }
    *all[i].into = PyFloat_AsDouble(number);
  }
  return !PyErr_Occurred();
}

static int set_indices(StateValidator *validator, PyObject *indices)
{
  const struct {
    const char *name;
    Indices *into;
    npy_intp least, limit;
  } all[] = {{"independent", &validator->independent, 0, validator->nv},
             {"quaternions", &validator->quaternions, 0, validator->nq - 3},
             {"curved", &validator->curved, 0, validator->nq},
             {"known", &validator->known, 0, validator->nq},
             {"parts", &validator->parts, 1, 1 << 20}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    PyObject *given = PyDict_GetItemString(indices, all[i].name);
    if (given == NULL || !copy_indices(all[i].into, given, all[i].least, all[i].limit)) {
      PyErr_Format(PyExc_ValueError, "indices: %s are missing, or not of this robot", all[i].name);
      return 0;
    }
  }
  if (validator->independent.count == validator->ny) return 1;
  PyErr_SetString(PyExc_ValueError, "sizes and indices do not belong together");
  return 0;
}

static int set_home(StateValidator *validator, PyObject *home)
{
  const double *numbers = vector_of(home, validator->nq);
  if (numbers == NULL) {
    PyErr_SetString(PyExc_ValueError, "home is no position of this robot");
    return 0;
  }
  validator->home = PyMem_Malloc((validator->nq + 1) * sizeof *numbers);
  if (validator->home == NULL) {
    PyErr_NoMemory();
    return 0;
  }
  memcpy(validator->home, numbers, validator->nq * sizeof *numbers);
  return 1;
}

static int set_loops(StateValidator *validator, PyObject *kernel)
{
  const Kernel *loop_state = (const Kernel *)kernel;
  validator->has_loops = kernel != Py_None;
  if (!validator->has_loops) return 1;
  if (!PyObject_TypeCheck(kernel, &KernelType) || loop_state->ports != 3
      || loop_state->size[0] != validator->nq) {
    PyErr_SetString(PyExc_ValueError, "not the loop_state of this robot");
    return 0;
  }
  validator->loop_state = (Kernel *)Py_NewRef(kernel);
  return 1;
}

static PyObject *validator_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
  static char *names[] = {"nq",         "nv",         "ny",
                          "limits",     "indices",    "home",
                          "loop_state", "state_type", "wrenches_type",
                          "identity",   "link_names", "link_frames",
                          "bodies",     NULL};
  PyObject *limits, *indices, *home, *loop_state, *state_type, *wrenches_type, *identity;
  PyObject *link_names, *link_frames;
  npy_intp bodies;
  StateValidator *validator = (StateValidator *)type->tp_alloc(type, 0);
  if (validator == NULL) return NULL;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "nnnO!O!OOO!O!OO!On:StateValidator", names,
                                   &validator->nq, &validator->nv, &validator->ny, &PyDict_Type,
                                   &limits, &PyDict_Type, &indices, &home, &loop_state,
                                   &PyType_Type, &state_type, &PyType_Type, &wrenches_type,
                                   &identity, &PyTuple_Type, &link_names, &link_frames, &bodies)
      || !set_numbers(validator, limits) || !set_indices(validator, indices)
      || !set_home(validator, home) || !set_loops(validator, loop_state)
      || !set_links(&validator->links, link_names, link_frames, bodies)) {
    Py_DECREF(validator);
    return NULL;
  }
  validator->state_type = (PyTypeObject *)Py_NewRef(state_type);
  validator->wrenches_type = (PyTypeObject *)Py_NewRef(wrenches_type);
  validator->identity = Py_NewRef(identity);
  return (PyObject *)validator;
}

static void validator_dealloc(PyObject *self)
{
  StateValidator *validator = (StateValidator *)self;
  Indices *indices[] = {&validator->independent, &validator->quaternions, &validator->curved,
                        &validator->known, &validator->parts};
  for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) PyMem_Free(indices[i]->index);
  PyMem_Free(validator->home);
  free_links(&validator->links);
  clear_large_pool(&validator->pool);
  Py_XDECREF(validator->state_type);
  Py_XDECREF(validator->wrenches_type);
  Py_XDECREF(validator->identity);
  Py_XDECREF(validator->closure);
  Py_XDECREF(validator->loop_state);
  Py_TYPE(self)->tp_free(self);
}

int closes(const StateValidator *validator, PyObject *kernel, npy_intp known)
{
  const Kernel *closure = (const Kernel *)kernel;
  return PyObject_TypeCheck(kernel, &KernelType) && validator->loop_state != NULL
         && closure->ports == 4 && known <= validator->nq && closure->size[0] == known
         && closure->size[1] == validator->nq && closure->size[2] == validator->nq
         && closure->size[3] == validator->loop_state->size[1];
}

static PyObject *validator_use_closure(PyObject *self, PyObject *kernel)
{
  StateValidator *validator = (StateValidator *)self;
  if (!closes(validator, kernel, validator->known.count))
    return PyErr_Format(PyExc_ValueError, "not the closure of this robot, or before its loops");
  Py_XSETREF(validator->closure, (Kernel *)Py_NewRef(kernel));
  Py_RETURN_NONE;
}

static Status check_one(const StateValidator *validator, LoopMemory *memory, PyObject *const *given,
                        double *q_new, double *yd_new)
{
  const double *q = NULL, *yd = NULL;
  Status status = read_position(validator, memory, given[0], q_new, &q);
  if (status == GOOD && given[1] != Py_None)
    status = read_velocity(validator, given[1], yd_new, &yd);
  if (status != GOOD) return status;
  if (q != q_new) memcpy(q_new, q, validator->nq * sizeof *q);
  if (yd == NULL)
    memset(yd_new, 0, validator->ny * sizeof *yd_new);
  else if (yd != yd_new)
    memcpy(yd_new, yd, validator->ny * sizeof *yd);
  return GOOD;
}

static PyObject *validator_check(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
  StateValidator *validator = (StateValidator *)self;
  if (count != 2 || Py_TYPE(arguments[0]) == validator->state_type)
    return PyErr_Format(PyExc_TypeError, "give a position that was not checked, and a velocity");
  PyObject *position = new_vector(validator->nq), *velocity = new_vector(validator->ny);
  double *numbers = PyMem_Malloc(loop_numbers(validator) * sizeof *numbers);
  PyObject *result = NULL;
  if (numbers == NULL) PyErr_NoMemory();
  if (position != NULL && velocity != NULL && numbers != NULL) {
    LoopMemory memory = loop_memory(validator, numbers);
    Status status =
        check_one(validator, &memory, arguments, PyArray_DATA((PyArrayObject *)position),
                  PyArray_DATA((PyArrayObject *)velocity));
    if (status == GOOD)
      result = Py_BuildValue("OOdd", position, velocity, memory.residual, memory.worst);
    else if (status == UNREAD)
      result = check_rows(validator, arguments[0], arguments[1]);
    else
      result = reject(status, -1);
  }
  PyMem_Free(numbers);
  Py_XDECREF(position);
  Py_XDECREF(velocity);
  return result;
}

static PyMethodDef validator_methods[] = {
    {"check", (PyCFunction)(void (*)(void))validator_check, METH_FASTCALL,
     "check(q, qd or None) -> q, yd, residual, conditioning; or a Rejection."},
    {"add_wrenches", add_wrenches, METH_VARARGS,
     "add_wrenches(link, wrenches (6 N,), into (6 bodies N,)): row by row, to those on its body."},
    {"use_closure", validator_use_closure, METH_O, "use_closure(kernel closure of y)."},
    {NULL},
};

static PyObject *validator_closes(PyObject *self, void *closure)
{
  return PyBool_FromLong(((StateValidator *)self)->closure != NULL);
}

static PyGetSetDef validator_properties[] = {
    {"closes", validator_closes, NULL, "Whether independent positions can be closed.", NULL},
    {NULL},
};

PyTypeObject StateValidatorType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros.engine.core.StateValidator",
    .tp_doc = "Positions and velocities of one robot, checked; see robot/calls.py.",
    .tp_basicsize = sizeof(StateValidator),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = validator_new,
    .tp_dealloc = validator_dealloc,
    .tp_methods = validator_methods,
    .tp_getset = validator_properties,
};
