/* Positions and velocities of one robot, checked: sizes, finite numbers, quaternions, loops.
   What `Inputs`, `LoopCloser` and `Mechanism.state` do, number by number, so that answers are the
   same to the last bit. Whatever they would refuse is left to them, and so is all else that is not
   a contiguous float64 vector. */
#include "rows.h"

static int on_loops(Reader *reader, const double *q)
{
  reader->residual = 0.0;
  reader->worst = 1.0;
  if (!reader->has_loops) return 1;
  if (reader->loop_state == NULL || reader->loop_state->withdrawn) return 0;
  const npy_intp *size = reader->loop_state->size;
  double *phi = reader->memory.phi, *conditioning = reader->memory.conditioning;
  double *ports[] = {(double *)q, phi, conditioning};
  reader->loop_state->evaluate(ports);
  int good = 1;
  for (npy_intp i = 0; i < size[1]; i++) {
    good &= fabs(phi[i]) <= reader->on_loops;
    reader->residual = larger(fabs(phi[i]), reader->residual);
  }
  for (npy_intp i = 0; i < size[2]; i++) {
    good &= conditioning[i] >= reader->singular;
    reader->worst = smaller(conditioning[i], reader->worst);
  }
  return good;
}

int normalize(const Reader *reader, double *q)
{
  for (npy_intp k = 0; k < reader->quaternions.count; k++) {
    double *x = q + reader->quaternions.index[k];
    double length = sqrt(((x[0] * x[0] + x[1] * x[1]) + x[2] * x[2]) + x[3] * x[3]);
    if (!(fabs(length - 1.0) <= reader->quaternion_tolerance)) return 0;
    if (fabs(length - 1.0) > reader->unit)
      for (int i = 0; i < 4; i++) x[i] /= length;
  }
  return 1;
}

/* One closure kernel's step, from one position to the next: whether it arrived, and not far away. */
static int close_once(const Reader *reader, LoopMemory memory, const Kernel *closure,
                      const double *last, double *q)
{
  if (closure->withdrawn) return 0;
  double *phi = memory.phi;
  double *ports[] = {memory.known, (double *)last, q, phi};
  closure->evaluate(ports);
  int good = 1;
  for (npy_intp i = 0; i < closure->size[3]; i++) good &= fabs(phi[i]) <= reader->closed;
  const npy_intp *curved = reader->curved.index;
  for (npy_intp i = 0; i < reader->curved.count; i++)
    good &= fabs(q[curved[i]] - last[curved[i]]) <= reader->nearby;
  return good;
}

int close_loops(const Reader *reader, LoopMemory memory, const Kernel *closure,
                const Indices *entries, const double *values, const double *start, double *q)
{
  double *next = memory.next, *known = memory.known;
  for (npy_intp k = 0; k < reader->parts.count; k++) {
    npy_intp parts = reader->parts.index[k];
    int good = 1;
    memcpy(q, start, reader->nq * sizeof *q);
    for (npy_intp remaining = parts - 1; good && remaining >= 0; remaining--) {
      double share = (double)remaining / (double)parts;
      for (npy_intp i = 0; i < entries->count; i++)
        known[i] = values[i] - (values[i] - start[entries->index[i]]) * share;
      good = close_once(reader, memory, closure, q, next);
      memcpy(q, next, reader->nq * sizeof *q);
    }
    if (good) return normalize(reader, q);
  }
  return 0;
}

npy_intp loop_numbers(const Reader *reader)
{
  const Kernel *loop_state = reader->loop_state;
  return 2 * reader->nq + 1 + (loop_state ? loop_state->size[1] + loop_state->size[2] : 0);
}

LoopMemory loop_memory(const Reader *reader, double *numbers)
{
  LoopMemory memory = {.phi = numbers, .conditioning = numbers, .next = numbers};
  if (reader->loop_state != NULL) {
    memory.conditioning = memory.phi + reader->loop_state->size[1];
    memory.next = memory.conditioning + reader->loop_state->size[2];
  }
  memory.known = memory.next + reader->nq;
  return memory;
}

/* The position of a state, which was checked when it was made. */
static int read_state(const Reader *reader, PyObject *state, const double **q)
{
  PyObject *of = PyObject_GetAttrString(state, "of");
  PyObject *position = PyObject_GetAttrString(state, "q");
  *q = position == NULL ? NULL : vector_of(position, reader->nq);
  int good = of == reader->identity && *q != NULL;
  Py_XDECREF(of);
  Py_XDECREF(position); /* the state, which cannot be changed, keeps it */
  PyErr_Clear();
  return good;
}

int read_position(Reader *reader, PyObject *given, double *into, const double **q)
{
  if (Py_TYPE(given) == reader->state_type) return read_state(reader, given, q);
  npy_intp size = length_of(given);
  const double *numbers = vector_of(given, size);
  if (numbers == NULL || !all_within(numbers, size, reader->largest_position)) return 0;
  *q = into;
  if (size == reader->nq && reader->quaternions.count == 0)
    *q = numbers;
  else if (size == reader->nq) {
    memcpy(into, numbers, size * sizeof *into);
    if (!normalize(reader, into)) return 0;
  } else if (size != reader->known.count || reader->closure == NULL
             || !close_loops(reader, reader->memory, reader->closure, &reader->known, numbers,
                             reader->home, into))
    return 0;
  return on_loops(reader, *q);
}

int read_velocity(Reader *reader, PyObject *given, double *into, const double **yd)
{
  npy_intp size = length_of(given);
  const double *numbers = vector_of(given, size);
  if (numbers == NULL || (size != reader->ny && size != reader->nv)
      || !all_within(numbers, size, reader->largest))
    return 0;
  *yd = numbers;
  if (size != reader->ny) {
    const npy_intp *independent = reader->independent.index;
    for (Py_ssize_t i = 0; i < reader->ny; i++) into[i] = numbers[independent[i]];
    *yd = into;
  }
  return 1;
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

static PyObject *reader_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
  PyObject *independent, *quaternions, *curved, *known, *parts, *home, *state_type, *identity;
  Reader *reader = (Reader *)type->tp_alloc(type, 0);
  if (reader == NULL) return NULL;
  if (!PyArg_ParseTuple(arguments, "(nnn)(dddddddddd)(OOOOO)OO!Op:Reader", &reader->nq, &reader->nv,
                        &reader->ny, &reader->largest_position, &reader->largest,
                        &reader->quaternion_tolerance, &reader->unit, &reader->closed,
                        &reader->nearby, &reader->on_loops, &reader->singular, &reader->batch_near,
                        &reader->batch_block, &independent, &quaternions, &curved, &known, &parts,
                        &home, &PyType_Type, &state_type, &identity, &reader->has_loops))
    goto fail;
  const double *numbers = vector_of(home, reader->nq);
  if (numbers == NULL || !copy_indices(&reader->independent, independent, 0, reader->nv)
      || reader->independent.count != reader->ny
      || !copy_indices(&reader->quaternions, quaternions, 0, reader->nq - 3)
      || !copy_indices(&reader->curved, curved, 0, reader->nq)
      || !copy_indices(&reader->known, known, 0, reader->nq)
      || !copy_indices(&reader->parts, parts, 1, 1 << 20)) {
    PyErr_SetString(PyExc_ValueError, "sizes and indices do not belong together");
    goto fail;
  }
  reader->home = PyMem_Malloc((reader->nq + 1) * sizeof *numbers);
  if (reader->home == NULL) {
    PyErr_NoMemory();
    goto fail;
  }
  memcpy(reader->home, numbers, reader->nq * sizeof *numbers);
  reader->state_type = (PyTypeObject *)Py_NewRef(state_type);
  reader->identity = Py_NewRef(identity);
  return (PyObject *)reader;
fail:
  Py_DECREF(reader);
  return NULL;
}

static void reader_dealloc(PyObject *self)
{
  Reader *reader = (Reader *)self;
  Indices *indices[] = {&reader->independent, &reader->quaternions, &reader->curved, &reader->known,
                        &reader->parts};
  for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) PyMem_Free(indices[i]->index);
  PyMem_Free(reader->home);
  PyMem_Free(reader->memory.phi);
  free_links(&reader->links);
  clear_large(&reader->spare);
  Py_XDECREF(reader->state_type);
  Py_XDECREF(reader->identity);
  Py_XDECREF(reader->closure);
  Py_XDECREF(reader->loop_state);
  Py_TYPE(self)->tp_free(self);
}

static PyObject *reader_use_loops(PyObject *self, PyObject *kernel)
{
  Reader *reader = (Reader *)self;
  Kernel *loop_state = (Kernel *)kernel;
  if (!PyObject_TypeCheck(kernel, &KernelType) || loop_state->ports != 3
      || loop_state->size[0] != reader->nq || reader->loop_state != NULL)
    return PyErr_Format(PyExc_ValueError, "not the loop_state of this robot, or again");
  reader->loop_state = (Kernel *)Py_NewRef(kernel);
  double *numbers = PyMem_Calloc(loop_numbers(reader), sizeof *numbers);
  if (numbers == NULL) {
    Py_CLEAR(reader->loop_state);
    return PyErr_NoMemory();
  }
  reader->memory = loop_memory(reader, numbers);
  Py_RETURN_NONE;
}

int closes(const Reader *reader, PyObject *kernel, npy_intp known)
{
  const Kernel *closure = (const Kernel *)kernel;
  return PyObject_TypeCheck(kernel, &KernelType) && reader->loop_state != NULL
         && closure->ports == 4 && known <= reader->nq && closure->size[0] == known
         && closure->size[1] == reader->nq && closure->size[2] == reader->nq
         && closure->size[3] == reader->loop_state->size[1];
}

static PyObject *reader_use_closure(PyObject *self, PyObject *kernel)
{
  Reader *reader = (Reader *)self;
  if (!closes(reader, kernel, reader->known.count))
    return PyErr_Format(PyExc_ValueError, "not the closure of this robot, or before its loops");
  Py_XSETREF(reader->closure, (Kernel *)Py_NewRef(kernel));
  Py_RETURN_NONE;
}

static PyObject *reader_check(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
  Reader *reader = (Reader *)self;
  const double *q = NULL, *yd = NULL;
  if (count != 2 || Py_TYPE(arguments[0]) == reader->state_type) Py_RETURN_NONE;
  PyObject *position = new_vector(reader->nq), *velocity = new_vector(reader->ny);
  PyObject *result = NULL;
  if (position == NULL || velocity == NULL) goto end;
  double *q_new = PyArray_DATA((PyArrayObject *)position);
  double *yd_new = PyArray_DATA((PyArrayObject *)velocity);
  if (!read_position(reader, arguments[0], q_new, &q)
      || (arguments[1] != Py_None && !read_velocity(reader, arguments[1], yd_new, &yd))) {
    result = check_rows(reader, arguments[0], arguments[1]);
    goto end;
  }
  if (q != q_new) memcpy(q_new, q, reader->nq * sizeof *q);
  if (yd == NULL)
    memset(yd_new, 0, reader->ny * sizeof *yd);
  else if (yd != yd_new)
    memcpy(yd_new, yd, reader->ny * sizeof *yd);
  result = Py_BuildValue("OOdd", position, velocity, reader->residual, reader->worst);
end:
  Py_XDECREF(position);
  Py_XDECREF(velocity);
  return result;
}

static PyMethodDef reader_methods[] = {
    {"check", (PyCFunction)(void (*)(void))reader_check, METH_FASTCALL,
     "check(q, qd or None) -> q, yd, residual, conditioning; or None, for whatever is not taken."},
    {"use_loops", reader_use_loops, METH_O, "use_loops(kernel loop_state)."},
    {"use_links", reader_use_links, METH_VARARGS,
     "use_links(names, body, R and p of each, how many bodies there are): for wrenches."},
    {"use_closure", reader_use_closure, METH_O, "use_closure(kernel closure of y)."},
    {NULL},
};

static PyObject *reader_closes(PyObject *self, void *closure)
{
  const Reader *reader = (Reader *)self;
  return PyBool_FromLong(reader->closure != NULL);
}

static PyObject *reader_ready(PyObject *self, void *closure)
{
  Reader *reader = (Reader *)self;
  return PyBool_FromLong(!reader->has_loops || reader->loop_state != NULL);
}

static PyGetSetDef reader_properties[] = {
    {"ready", reader_ready, NULL, "Whether spanning positions can be checked.", NULL},
    {"closes", reader_closes, NULL, "Whether independent positions can be closed, one and many.",
     NULL},
    {NULL},
};

PyTypeObject ReaderType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros._native.calls.Reader",
    .tp_doc = "Positions and velocities of one robot, checked; see robot/native_calls.py.",
    .tp_basicsize = sizeof(Reader),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = reader_new,
    .tp_dealloc = reader_dealloc,
    .tp_methods = reader_methods,
    .tp_getset = reader_properties,
};
