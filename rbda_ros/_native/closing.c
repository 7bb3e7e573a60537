/* Robot.close for one set of known joints: a vector, rows of them, or a dict of numbers by name. */
#include "rows.h"

typedef struct {
  PyObject_HEAD vectorcallfunc vectorcall;
  Reader *reader;
  Kernel *closure; /* NULL without loops: then there is nothing to close */
  Indices entries; /* of q that are known */
  PyObject *names; /* of a dict: first those of `entries`, in their order; else NULL */
  Indices places;  /* of all names in q */
  double *values, *start;
} Closing;

/* What is known, and where to start: from a vector of y, or of q to be closed. */
static int read_vector(Closing *closing, PyObject *given, const double **start)
{
  Reader *reader = closing->reader;
  npy_intp size = length_of(given), count = closing->entries.count;
  const double *numbers = vector_of(given, size);
  if (numbers == NULL || !all_within(numbers, size, reader->largest_position)) return 0;
  if (size == reader->nq) {
    for (npy_intp i = 0; i < count; i++) closing->values[i] = numbers[closing->entries.index[i]];
    *start = numbers;
    return 1;
  }
  if (size != count) return 0;
  memcpy(closing->values, numbers, count * sizeof *numbers);
  return 1;
}

/* The same from a dict that has just these names. */
static int read_names(Closing *closing, PyObject *given, const double **start)
{
  Reader *reader = closing->reader;
  npy_intp count = closing->entries.count, all = PyTuple_GET_SIZE(closing->names);
  if (!PyDict_CheckExact(given) || PyDict_GET_SIZE(given) != all) return 0;
  memcpy(closing->start, reader->home, reader->nq * sizeof *closing->start);
  for (npy_intp i = 0; i < all; i++) {
    PyObject *value = PyDict_GetItemWithError(given, PyTuple_GET_ITEM(closing->names, i));
    if (value == NULL || !PyFloat_Check(value)) return 0;
    double number = PyFloat_AS_DOUBLE(value);
    if (!(fabs(number) <= reader->largest_position)) return 0;
    if (i < count) closing->values[i] = number;
    closing->start[closing->places.index[i]] = number;
  }
  if (all > count) *start = closing->start;
  return 1;
}

/* One position, as it is known, to q: whether it is closed. */
static int close_one(Closing *closing, PyObject *given, const double *guess, double *q)
{
  Reader *reader = closing->reader;
  const double *start = reader->home;
  if (!(closing->names == NULL ? read_vector(closing, given, &start)
                               : read_names(closing, given, &start)))
    return 0;
  if (closing->closure != NULL)
    return close_loops(reader, reader->memory, closing->closure, &closing->entries, closing->values,
                       guess == NULL ? start : guess, q);
  memcpy(q, closing->values, reader->nq * sizeof *q);
  return normalize(reader, q);
}

static PyObject *closing_vectorcall(PyObject *self, PyObject *const *given, size_t flags,
                                    PyObject *names)
{
  Closing *closing = (Closing *)self;
  Reader *reader = closing->reader;
  Py_ssize_t count = PyVectorcall_NARGS(flags);
  const double *guess = NULL;
  if (count < 1 || count > 2 || names != NULL) Py_RETURN_NONE;
  if (count == 2 && given[1] != Py_None) {
    guess = vector_of(given[1], reader->nq);
    if (guess == NULL || !all_within(guess, reader->nq, reader->largest_position)) Py_RETURN_NONE;
  }
  PyObject *answer = new_vector(reader->nq);
  if (answer == NULL) return NULL;
  if (close_one(closing, given[0], guess, PyArray_DATA((PyArrayObject *)answer))) return answer;
  Py_DECREF(answer);
  PyErr_Clear();
  if (closing->names != NULL) Py_RETURN_NONE;
  return close_motion(reader, closing->closure, &closing->entries, given[0], guess);
}

static int set_joints(Closing *closing, PyObject *closure, PyObject *entries, PyObject *names,
                      PyObject *places)
{
  const Reader *reader = closing->reader;
  if (!copy_indices(&closing->entries, entries, 0, reader->nq)
      || !copy_indices(&closing->places, places, 0, reader->nq))
    return 0;
  npy_intp count = closing->entries.count;
  if (closure == Py_None) return !reader->has_loops && count == reader->nq && names == Py_None;
  if (!closes(reader, closure, count)) return 0;
  closing->closure = (Kernel *)Py_NewRef(closure);
  if (names == Py_None) return 1;
  closing->names = Py_NewRef(names);
  return PyTuple_CheckExact(names) && PyTuple_GET_SIZE(names) >= count
         && PyTuple_GET_SIZE(names) == closing->places.count;
}

static PyObject *closing_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
  PyObject *reader, *closure, *entries, *names, *places;
  if (!PyArg_ParseTuple(arguments, "O!OOOO:Closing", &ReaderType, &reader, &closure, &entries,
                        &names, &places))
    return NULL;
  Closing *closing = (Closing *)type->tp_alloc(type, 0);
  if (closing == NULL) return NULL;
  closing->vectorcall = closing_vectorcall;
  closing->reader = (Reader *)Py_NewRef(reader);
  Py_ssize_t nq = closing->reader->nq;
  if (!set_joints(closing, closure, entries, names, places)) {
    PyErr_SetString(PyExc_ValueError, "joints and kernel do not belong together");
    Py_DECREF(closing);
    return NULL;
  }
  closing->values = PyMem_Calloc(2 * nq + 1, sizeof *closing->values);
  if (closing->values == NULL) {
    Py_DECREF(closing);
    return PyErr_NoMemory();
  }
  closing->start = closing->values + nq;
  return (PyObject *)closing;
}

static void closing_dealloc(PyObject *self)
{
  Closing *closing = (Closing *)self;
  Py_XDECREF(closing->reader);
  Py_XDECREF(closing->closure);
  Py_XDECREF(closing->names);
  PyMem_Free(closing->entries.index);
  PyMem_Free(closing->places.index);
  PyMem_Free(closing->values);
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject ClosingType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros._native.calls.Closing",
    .tp_doc = "Robot.close for one set of known joints, or None; see robot/native_calls.py.",
    .tp_basicsize = sizeof(Closing),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Closing, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = closing_new,
    .tp_dealloc = closing_dealloc,
};
