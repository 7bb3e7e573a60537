/* The solver of cone_solver.c over numpy arrays. */
#include "cone_solver.h"

#include <string.h>

#include "engine.h"

enum { MAX_CONE_ROWS = 768 };

/* The first row of each block, and their number of rows in all; -1 for an unknown kind. */
static int read_blocks(const char *kinds, Py_ssize_t blocks, int *first)
{
  int m = 0;
  for (Py_ssize_t b = 0; b < blocks; b++) {
    if (strchr("epbc", kinds[b]) == NULL) return -1;
    first[b] = m;
    m += kinds[b] == 'c' ? 3 : 1;
    if (m > MAX_CONE_ROWS) return -1;
  }
  first[blocks] = m;
  return m;
}

static int has_shape(PyArrayObject *array, int dimensions, const npy_intp *shape)
{
  return PyArray_TYPE(array) == NPY_DOUBLE && PyArray_IS_C_CONTIGUOUS(array)
         && PyArray_NDIM(array) == dimensions
         && memcmp(PyArray_DIMS(array), shape, dimensions * sizeof *shape) == 0;
}

PyObject *solve_cones(PyObject *self, PyObject *arguments)
{
  (void)self;
  const char *kinds;
  Py_ssize_t blocks;
  PyArrayObject *A, *g, *parameters, *x;
  int coulomb, first[MAX_CONE_ROWS + 1];
  double tolerance;
  long most;
  if (!PyArg_ParseTuple(arguments, "s#O!O!O!O!pdl", &kinds, &blocks, &PyArray_Type, &A,
                        &PyArray_Type, &g, &PyArray_Type, &parameters, &PyArray_Type, &x, &coulomb,
                        &tolerance, &most))
    return NULL;
  int m = blocks > MAX_CONE_ROWS ? -1 : read_blocks(kinds, blocks, first);
  npy_intp count = PyArray_NDIM(A) > 0 ? PyArray_DIM(A, 0) : 0;
  npy_intp square[] = {count, m, m}, rows[] = {count, m}, each[] = {count, blocks};
  if (m < 0 || !has_shape(A, 3, square) || !has_shape(g, 2, rows) || !has_shape(x, 2, rows)
      || !has_shape(parameters, 2, each) || !PyArray_ISWRITEABLE(x)) {
    PyErr_SetString(PyExc_ValueError, "kinds, matrices and vectors do not belong together");
    return NULL;
  }
  ConeProblem problem = {m, (int)blocks, coulomb, kinds, first, tolerance, most};
  PyArrayObject *missed = (PyArrayObject *)PyArray_SimpleNew(1, &count, NPY_DOUBLE);
  PyArrayObject *taken = (PyArrayObject *)PyArray_SimpleNew(1, &count, NPY_LONG);
  double *memory = PyMem_Calloc(cone_memory(m, (int)blocks), sizeof(double));
  if (missed == NULL || taken == NULL || memory == NULL) {
    PyMem_Free(memory);
    Py_XDECREF(missed);
    Py_XDECREF(taken);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
  }
  const double *A_n = PyArray_DATA(A), *g_n = PyArray_DATA(g), *p_n = PyArray_DATA(parameters);
  double *x_n = PyArray_DATA(x), *missed_n = PyArray_DATA(missed);
  long *taken_n = PyArray_DATA(taken);
  Py_BEGIN_ALLOW_THREADS;
  for (npy_intp n = 0; n < count; n++)
    missed_n[n] = cone_solve(&problem, A_n + n * m * m, g_n + n * m, p_n + n * blocks, x_n + n * m,
                             memory, taken_n + n);
  Py_END_ALLOW_THREADS;
  PyMem_Free(memory);
  return Py_BuildValue("NN", missed, taken);
}
