/* The continuation of closing.c, for a kernel whose arrays Python fills and reads. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>

#include "closing.h"

typedef struct {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *kernel; /* rbda_ros.engine.core.Kernel */
  PyObject *arrays; /* tuple: its inputs, then its outputs */
  PyObject *kept;   /* tuple: the arrays that `closing` and `rules` point into */
  kernel_t bound;
  closing_t closing;
  closing_rules_t rules;
  size_t health; /* how many numbers it has: those of commands are more */
} ContinuationCall;

/* The kernel, by the interpreter. An error stays set, and no further evaluation changes it. */
static void evaluate(void *memory)
{
  const ContinuationCall *closer = memory;
  if (PyErr_Occurred()) return;
  PyObject *done = PyObject_Call(closer->kernel, closer->arrays, NULL);
  Py_XDECREF(done);
}

static int find_memory(PyObject *array, const char *format, void **at, size_t *count)
{
  Py_buffer view;
  if (PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) return 0;
  const int right = view.itemsize == 8 && view.format != NULL && strchr(format, view.format[0]);
  *at = view.buf;
  *count = (size_t)view.len / 8;
  PyBuffer_Release(&view); /* whoever keeps the array keeps its memory */
  if (!right) PyErr_SetString(PyExc_ValueError, "an array has another type");
  return right;
}

/* Find the arrays of a closing, and check that their sizes fit each other. */
static int set_closing(ContinuationCall *closer, PyObject *const *given, Py_ssize_t base)
{
  closing_t *of = &closer->closing;
  closing_rules_t *rules = &closer->rules;
  size_t entries, q;
  if (!find_memory(given[0], "d", (void **)&of->position, &of->known)
      || !find_memory(given[1], "d", (void **)&of->guess, &of->nq)
      || !find_memory(given[2], "d", (void **)&of->q, &q)
      || !find_memory(given[3], "d", (void **)&of->health, &closer->health)
      || !find_memory(given[4], "lq", (void **)&of->entries, &entries)
      || !find_memory(given[5], "lq", (void **)&rules->parts, &rules->part_count))
    return 0;
  int fit = entries == of->known && q == of->nq
            && (closer->health == HEALTH || closer->health == COMMAND_HEALTH) && base >= 0
            && (size_t)base <= of->nq;
  for (size_t k = 0; fit && k < entries; k++)
    fit = of->entries[k] >= 0 && (size_t)of->entries[k] < of->nq;
  if (!fit) {
    PyErr_SetString(PyExc_ValueError, "arrays and joints do not belong together");
    return 0;
  }
  of->base_nq = (size_t)base;
  of->scratch = PyMem_Calloc(2 * of->nq + 2 * of->known + 1, sizeof(double));
  if (of->scratch == NULL) PyErr_NoMemory();
  return of->scratch != NULL;
}

static closing_result_t judge(const double *health, size_t count, double closed,
                              double max_condition, double cannot_give)
{
  return count == HEALTH ? judge_health(health, closed, max_condition)
                         : judge_command(health, max_condition, cannot_give);
}

PyObject *judge_closing(PyObject *self, PyObject *arguments)
{
  PyObject *array;
  void *health;
  size_t count;
  double closed, max_condition, cannot_give;
  (void)self;
  if (!PyArg_ParseTuple(arguments, "Oddd:judge_closing", &array, &closed, &max_condition,
                        &cannot_give)
      || !find_memory(array, "d", &health, &count))
    return NULL;
  if (count != HEALTH && count != COMMAND_HEALTH)
    return PyErr_Format(PyExc_ValueError, "no health has %zu numbers", count);
  return PyLong_FromLong(judge(health, count, closed, max_condition, cannot_give));
}

static PyObject *loop_closer_vectorcall(PyObject *self, PyObject *const *given, size_t flags,
                                        PyObject *names)
{
  ContinuationCall *closer = (ContinuationCall *)self;
  void *home;
  size_t count;
  if (PyVectorcall_NARGS(flags) != 3 || names != NULL)
    return PyErr_Format(PyExc_TypeError, "give another closed position, and two bounds");
  const double max_condition = PyFloat_AsDouble(given[1]), cannot_give = PyFloat_AsDouble(given[2]);
  if (PyErr_Occurred()) return NULL;
  if (!find_memory(given[0], "d", &home, &count)) return NULL;
  if (count != closer->closing.nq)
    return PyErr_Format(PyExc_ValueError, "a closed position has %zu numbers", closer->closing.nq);
  closing_result_t result = close_loops(&closer->closing, &closer->rules, home);
  if (result == CLOSED)
    result = judge(closer->closing.health, closer->health, closer->rules.closed, max_condition,
                   cannot_give);
  return PyErr_Occurred() ? NULL : PyLong_FromLong(result);
}

static PyObject *loop_closer_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
  static char *words[] = {"kernel", "arrays",  "position", "guess",  "q",      "health",  "entries",
                          "parts",  "base_nq", "precise",  "closed", "nearby", "repeats", NULL};
  PyObject *kernel, *arrays, *given[6];
  Py_ssize_t base;
  closing_rules_t rules = {0};
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "$OO!OOOOOOndddi:ContinuationCall", words,
                                   &kernel, &PyTuple_Type, &arrays, &given[0], &given[1], &given[2],
                                   &given[3], &given[4], &given[5], &base, &rules.precise,
                                   &rules.closed, &rules.nearby, &rules.repeats))
    return NULL;
  ContinuationCall *closer = (ContinuationCall *)type->tp_alloc(type, 0);
  if (closer == NULL) return NULL;
  closer->vectorcall = loop_closer_vectorcall;
  closer->kernel = Py_NewRef(kernel);
  closer->arrays = Py_NewRef(arrays);
  closer->kept = PyTuple_Pack(6, given[0], given[1], given[2], given[3], given[4], given[5]);
  closer->rules = rules;
  closer->bound = (kernel_t){.evaluate = evaluate, .memory = closer};
  closer->closing.kernel = &closer->bound;
  if (closer->kept == NULL || !set_closing(closer, given, base)) Py_CLEAR(closer);
  return (PyObject *)closer;
}

static void loop_closer_dealloc(PyObject *self)
{
  ContinuationCall *closer = (ContinuationCall *)self;
  Py_XDECREF(closer->kernel);
  Py_XDECREF(closer->arrays);
  Py_XDECREF(closer->kept);
  PyMem_Free(closer->closing.scratch);
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject ContinuationCallType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros.engine.core.ContinuationCall",
    .tp_doc =
        "ContinuationCall(*, kernel, arrays, position, guess, q, health, entries, parts, base_nq,\n"
        "precise, closed, nearby, repeats): closes loops over and over; see closing.h.\n\n"
        "The kernel reads and writes `arrays`, among them position, guess, q and health.\n"
        "Called with another closed position (nq,), the largest condition number, and the share\n"
        "of a force that motors may miss, it returns a result of closing.h.",
    .tp_basicsize = sizeof(ContinuationCall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(ContinuationCall, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = loop_closer_new,
    .tp_dealloc = loop_closer_dealloc,
};

int add_closing_results(PyObject *module)
{
  const struct {
    const char *name;
    closing_result_t result;
  } results[] = {{"CLOSED", CLOSED},
                 {"INPUT_NOT_FINITE", INPUT_NOT_FINITE},
                 {"TOO_FAR", TOO_FAR},
                 {"AT_DEAD_POINT", AT_DEAD_POINT},
                 {"EFFORT_NOT_FINITE", EFFORT_NOT_FINITE}};
  for (size_t i = 0; i < sizeof results / sizeof *results; i++)
    if (PyModule_AddIntConstant(module, results[i].name, results[i].result) < 0) return 0;
  return 1;
}
