/* Robot.close for one set of known joints: a vector, rows of them, or a dict of numbers by name. */
#include "batch.h"

typedef struct {
  PyObject_HEAD vectorcallfunc vectorcall;
  StateValidator *validator;
  Kernel *closure; /* NULL without loops: then there is nothing to close */
  Indices entries; /* of q that are known */
  PyObject *names; /* of a dict: first those of `entries`, in their order; else NULL */
  Indices places;  /* of all names in q */
} ClosureCall;

/* Work memory of one call: values of the known entries, where to start, memory for loops. */
typedef struct {
  double *values, *start, *loops;
} Workspace;

/* Read values of the known entries, and where to start, from a vector of y, or of q to be closed. */
static int read_vector(const ClosureCall *call, const Workspace *work, PyObject *given,
                       const double **start)
{
  const StateValidator *validator = call->validator;
  npy_intp size = length_of(given), count = call->entries.count;
  const double *numbers = vector_of(given, size);
  if (numbers == NULL || !all_within(numbers, size, validator->largest_position)) return 0;
  if (size == validator->nq) {
    if (!all_units(validator, numbers)) return 0;
    for (npy_intp i = 0; i < count; i++) work->values[i] = numbers[call->entries.index[i]];
    *start = numbers;
    return 1;
  }
  if (size != count) return 0;
  memcpy(work->values, numbers, count * sizeof *numbers);
  return 1;
}

/* The same from a dict with exactly these names. */
static int read_names(const ClosureCall *call, const Workspace *work, PyObject *given,
                      const double **start)
{
  const StateValidator *validator = call->validator;
  npy_intp count = call->entries.count, all = PyTuple_GET_SIZE(call->names);
  if (!PyDict_CheckExact(given) || PyDict_GET_SIZE(given) != all) return 0;
  memcpy(work->start, validator->home, validator->nq * sizeof *work->start);
  for (npy_intp i = 0; i < all; i++) {
    PyObject *value = PyDict_GetItemWithError(given, PyTuple_GET_ITEM(call->names, i));
    if (value == NULL || !PyFloat_Check(value)) return 0;
    double number = PyFloat_AS_DOUBLE(value);
    if (!(fabs(number) <= validator->largest_position)) return 0;
    if (i < count) work->values[i] = number;
    work->start[call->places.index[i]] = number;
  }
  if (all > count) *start = work->start;
  return 1;
}

/* Close one position into q. */
static Status close_one(const ClosureCall *call, const Workspace *work, PyObject *given,
                        const double *guess, double *q)
{
  const StateValidator *validator = call->validator;
  const double *start = validator->home;
  if (!(call->names == NULL ? read_vector(call, work, given, &start)
                            : read_names(call, work, given, &start)))
    return UNREAD;
  if (call->closure != NULL) {
    LoopMemory memory = loop_memory(validator, work->loops);
    return close_position(validator, &memory, call->closure, &call->entries, work->values,
                          guess == NULL ? start : guess, q);
  }
  memcpy(q, work->values, validator->nq * sizeof *q);
  return normalize(validator, q) ? GOOD : UNREAD;
}

static PyObject *close_alone(ClosureCall *call, PyObject *given, const double *guess)
{
  StateValidator *validator = call->validator;
  npy_intp nq = validator->nq;
  PyObject *answer = new_vector(nq);
  double *numbers = PyMem_Malloc((2 * nq + loop_numbers(validator)) * sizeof *numbers);
  if (numbers == NULL) PyErr_NoMemory();
  if (answer != NULL && numbers != NULL) {
    const Workspace work = {numbers, numbers + nq, numbers + 2 * nq};
    Status status = close_one(call, &work, given, guess, PyArray_DATA((PyArrayObject *)answer));
    if (status == UNREAD) PyErr_Clear();
    if (status != GOOD) Py_SETREF(answer, reject(status, -1));
  } else
    Py_CLEAR(answer);
  PyMem_Free(numbers);
  return answer;
}

/* The guess, NULL if it is None; 0 if it is no position. */
static int read_guess(const StateValidator *validator, PyObject *given, const double **guess)
{
  *guess = NULL;
  if (given == Py_None) return 1;
  *guess = vector_of(given, validator->nq);
  return *guess != NULL && all_within(*guess, validator->nq, validator->largest_position)
         && all_units(validator, *guess);
}

static PyObject *closure_call_vectorcall(PyObject *self, PyObject *const *given, size_t flags,
                                         PyObject *names)
{
  ClosureCall *call = (ClosureCall *)self;
  Py_ssize_t count = PyVectorcall_NARGS(flags);
  const double *guess = NULL;
  if (count < 1 || count > 2 || names != NULL)
    return PyErr_Format(PyExc_TypeError, "give a position, and where to start or None");
  if (count == 2 && !read_guess(call->validator, given[1], &guess)) return reject(UNREAD, 1);
  PyArrayObject *array = (PyArrayObject *)given[0];
  if (PyArray_CheckExact(given[0]) && PyArray_NDIM(array) == 2 && call->names == NULL)
    return close_batch(call->validator, call->closure, &call->entries, given[0], guess);
  return close_alone(call, given[0], guess);
}

static PyObject *closure_call_rows(PyObject *self, PyObject *arguments)
{
  ClosureCall *call = (ClosureCall *)self;
  PyObject *given, *from, *q, *missed;
  npy_intp first;
  const double *guess;
  if (!PyArg_ParseTuple(arguments, "OOOnO:close_rows", &given, &from, &q, &first, &missed))
    return NULL;
  if (!read_guess(call->validator, from, &guess)) return reject(UNREAD, 1);
  return close_batch_from(call->validator, call->closure, &call->entries, given, guess, q, first,
                          missed);
}

static PyMethodDef closure_call_methods[] = {
    {"close_rows", closure_call_rows, METH_VARARGS,
     "close_rows(rows, guess or None, q, first, missed): close rows into q (N, nq), anchors from "
     "row\n"
     "`first` on. None, with rows flagged in `missed` (N,) that are not closed; or a Rejection of\n"
     "an anchor, which must be closed otherwise before the next call begins behind it."},
    {NULL},
};

static int set_joints(ClosureCall *call, PyObject *closure, PyObject *entries, PyObject *names,
                      PyObject *places)
{
  const StateValidator *validator = call->validator;
  if (!copy_indices(&call->entries, entries, 0, validator->nq)
      || !copy_indices(&call->places, places, 0, validator->nq))
    return 0;
  npy_intp count = call->entries.count;
  if (closure == Py_None)
    return !validator->has_loops && count == validator->nq && names == Py_None;
  if (!closes(validator, closure, count)) return 0;
  call->closure = (Kernel *)Py_NewRef(closure);
  if (names == Py_None) return 1;
  call->names = Py_NewRef(names);
  return PyTuple_CheckExact(names) && PyTuple_GET_SIZE(names) >= count
         && PyTuple_GET_SIZE(names) == call->places.count;
}

static PyObject *closure_call_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
  PyObject *validator, *closure, *entries, *names, *places;
  if (!PyArg_ParseTuple(arguments, "O!OOOO:ClosureCall", &StateValidatorType, &validator, &closure,
                        &entries, &names, &places))
    return NULL;
  ClosureCall *call = (ClosureCall *)type->tp_alloc(type, 0);
  if (call == NULL) return NULL;
  call->vectorcall = closure_call_vectorcall;
  call->validator = (StateValidator *)Py_NewRef(validator);
  if (!set_joints(call, closure, entries, names, places)) {
    PyErr_SetString(PyExc_ValueError, "joints and kernel do not belong together");
    Py_DECREF(call);
    return NULL;
  }
  return (PyObject *)call;
}

static void closure_call_dealloc(PyObject *self)
{
  ClosureCall *call = (ClosureCall *)self;
  Py_XDECREF(call->validator);
  Py_XDECREF(call->closure);
  Py_XDECREF(call->names);
  PyMem_Free(call->entries.index);
  PyMem_Free(call->places.index);
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject ClosureCallType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros.engine.core.ClosureCall",
    .tp_doc = "Robot.close for one set of known joints, or a Rejection; see robot/calls.py.",
    .tp_basicsize = sizeof(ClosureCall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(ClosureCall, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = closure_call_new,
    .tp_dealloc = closure_call_dealloc,
    .tp_methods = closure_call_methods,
};
