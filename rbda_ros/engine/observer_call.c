/* The momentum observer, for Python. */
#include "engine.h"
#include "observer_step.h"

PyObject *step_observer(PyObject *self, PyObject *arguments)
{
  PyObject *arrays[6];
  double *numbers[6], dt;
  int begins;
  if (!PyArg_ParseTuple(arguments, "OOOdpOOO:step_observer", &arrays[0], &arrays[1], &arrays[2],
                        &dt, &begins, &arrays[3], &arrays[4], &arrays[5]))
    return NULL;
  const npy_intp ny = length_of(arrays[0]);
  for (int i = 0; i < 6; i++) {
    numbers[i] = vector_of(arrays[i], ny);
    if (numbers[i] == NULL || (i > 2 && !PyArray_ISWRITEABLE((PyArrayObject *)arrays[i])))
      return PyErr_Format(PyExc_ValueError, "give float64 vectors of one length");
  }
  for (npy_intp k = 0; k < ny; k++) /* each coordinate has its gain */
    observer_step(1, numbers[0] + k, numbers[1] + k, numbers[2][k], dt, begins, numbers[3] + k,
                  numbers[4] + k, numbers[5] + k);
  Py_RETURN_NONE;
}

PyObject *observed_wrench(PyObject *self, PyObject *arguments)
{
  PyArrayObject *J;
  PyObject *external;
  if (!PyArg_ParseTuple(arguments, "O!O:observed_wrench", &PyArray_Type, &J, &external))
    return NULL;
  const npy_intp ny = length_of(external);
  const double *force = vector_of(external, ny);
  if (force == NULL || PyArray_TYPE(J) != NPY_DOUBLE || !PyArray_IS_C_CONTIGUOUS(J)
      || PyArray_NDIM(J) != 2 || PyArray_DIM(J, 0) > 6 || PyArray_DIM(J, 1) != ny)
    return PyErr_Format(PyExc_ValueError, "give J (6 rows at most, ny) and a force (ny,)");
  const int rows = (int)PyArray_DIM(J, 0);
  PyObject *wrench = new_vector(6);
  double *scratch = PyMem_Malloc(((size_t)rows * (size_t)ny + 1) * sizeof *scratch);
  if (scratch == NULL) PyErr_NoMemory();
  if (wrench != NULL && scratch != NULL)
    observer_wrench(PyArray_DATA(J), rows, (int)ny, force, scratch,
                    PyArray_DATA((PyArrayObject *)wrench));
  else
    Py_CLEAR(wrench);
  PyMem_Free(scratch);
  return wrench;
}
