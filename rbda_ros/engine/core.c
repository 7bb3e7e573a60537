/* rbda_ros.engine.core: operations of robots, evaluated without the interpreter. */
#define RBDA_ROS_IMPORTS_NUMPY
#include "engine.h"

#include "observer_step.h"

Numpy numpy;
PyTypeObject *rejection_type;

static PyStructSequence_Field rejection_fields[] = {
    {"status", "One of the codes of this module, such as UNREAD."},
    {"row", "Which argument was not read, or which row of a batch is rejected; -1 for none."},
    {"value", "How much loops that are closed by their forces miss [m/s^2]; else 0."},
    {NULL, NULL},
};

static PyStructSequence_Desc rejection_description = {
    .name = "rbda_ros.engine.core.Rejection",
    .doc = "Why an operation has no result.",
    .fields = rejection_fields,
    .n_in_sequence = 3,
};

PyObject *reject(Status status, npy_intp row)
{
  return reject_value(status, row, 0.0);
}

PyObject *reject_value(Status status, npy_intp row, double value)
{
  if (status == FAILED) return NULL;
  PyObject *rejection = PyStructSequence_New(rejection_type);
  if (rejection == NULL) return NULL;
  PyStructSequence_SetItem(rejection, 0, PyLong_FromLong(status));
  PyStructSequence_SetItem(rejection, 1, PyLong_FromSsize_t(row));
  PyStructSequence_SetItem(rejection, 2, PyFloat_FromDouble(value));
  if (PyErr_Occurred()) Py_CLEAR(rejection);
  return rejection;
}

static PyObject *largest_disagreement(PyObject *self, PyObject *arguments)
{
  PyObject *measured, *computed;
  int angular;
  double scale, largest = 0.0;
  npy_intp row = 0;
  if (!PyArg_ParseTuple(arguments, "OOpd:largest_disagreement", &measured, &computed, &angular,
                        &scale))
    return NULL;
  const npy_intp count = length_of(measured);
  const double *one = vector_of(measured, count), *other = vector_of(computed, count);
  if (one == NULL || other == NULL)
    return PyErr_Format(PyExc_ValueError, "give two float64 vectors of one length");
  for (npy_intp k = 0; k < count; k++) {
    const double apart = disagreement(one[k], other[k], angular, scale);
    if (!(apart > largest)) continue;
    largest = apart;
    row = k;
  }
  return Py_BuildValue("nd", row, largest);
}

static PyObject *step_observer(PyObject *self, PyObject *arguments)
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

static PyObject *observed_wrench(PyObject *self, PyObject *arguments)
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

static PyMethodDef functions[] = {
    {"solve_cones", solve_cones, METH_VARARGS,
     "solve_cones(kinds, A (n, m, m), g (n, m), parameters (n, blocks), x (n, m), coulomb, "
     "tolerance, max_iterations) -> residual velocities (n), iterations (n). x is where to start, "
     "and the solution then."},
    {"judge_closing", judge_closing, METH_VARARGS,
     "judge_closing(health, closed, max_condition, cannot_give): a result of closing.h; `health` "
     "of\n"
     "a command is judged by how much the motors miss, and not by `closed`."},
    {"step_observer", step_observer, METH_VARARGS,
     "step_observer(p, drive, gain, dt, begins, integral, last drive, external), each (ny,): one\n"
     "step of the momentum observer, into the last three."},
    {"observed_wrench", observed_wrench, METH_VARARGS,
     "observed_wrench(J (rows, ny), external (ny,)) -> (6,): smallest least squares of J' w."},
    {"iterate_contacts", iterate_contacts, METH_VARARGS,
     "iterate_contacts(kernel, arrays, tolerance, change, each, most) -> (iterations, converged):\n"
     "call a kernel of contacts on its arrays until they are satisfied; or a Rejection."},
    {"largest_disagreement", largest_disagreement, METH_VARARGS,
     "largest_disagreement(measured (n,), computed (n,), angular, scale) -> (row, difference)."},
    {"frictional_steps", frictional_steps, METH_VARARGS,
     "frictional_steps(kinds, dt, recovery, tolerance, max_iterations, contact, parameters, start, "
     "yd, ydd, gaps, axes, J, X, A, J of other rows, b of other rows, inverse) -> yd, ydd, forces, "
     "impulses, b, velocities, J, residuals, iterations, compliance; None where the mass matrix is "
     "singular. See frictional_step.c."},
    {"contact_biases", contact_biases, METH_VARARGS,
     "contact_biases(dt, recovery, contact (c, 4), gaps (c), approach (c)) -> b (3c), R (3c)."},
    {"xla_handler", xla_handler, METH_VARARGS,
     "xla_handler(function, targets)\n--\n\nA capsule of the target that compiled JAX code calls."
     " A call goes to the kernel or operation that the dict `targets` has for its key; those that"
     " it has none for, or that are rejected, go to the function."},
    {"near_limits", near_limits, METH_VARARGS,
     "near_limits(dt, near, q, yd, ydd, G, places, rates, bounds) -> (2, limits) or None."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "rbda_ros.engine.core",
    .m_doc = "Kernels, and operations of robots that validate, close loops, evaluate and check.",
    .m_size = -1,
    .m_methods = functions,
};

static int add_codes(PyObject *module)
{
  const struct {
    const char *name;
    Status status;
  } codes[] = {{"UNREAD", UNREAD},         {"NOT_CLOSED", NOT_CLOSED},
               {"OFF_LOOPS", OFF_LOOPS},   {"DEAD_POINT", DEAD_POINT},
               {"NOT_FINITE", NOT_FINITE}, {"LOOPS_MISSED", LOOPS_MISSED},
               {"SINGULAR", SINGULAR}};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (PyModule_AddIntConstant(module, codes[i].name, codes[i].status) < 0) return 0;
  return PyModule_AddIntConstant(module, "MAX_METHODS", MAX_METHODS) == 0;
}

PyMODINIT_FUNC PyInit_core(void)
{
  import_array();
  numpy = (Numpy){&PyArray_Type, PyArray_DescrFromType(NPY_DOUBLE)};
  PyTypeObject *types[] = {&KernelType,      &StateValidatorType,  &OperationCallType,
                           &ClosureCallType, &ContactCallType,     &MethodDispatchType,
                           &MethodTableType, &ContinuationCallType};
  PyObject *module = PyModule_Create(&definition);
  if (module == NULL) return NULL;
  rejection_type = PyStructSequence_NewType(&rejection_description);
  int good = rejection_type != NULL && PyModule_AddType(module, rejection_type) == 0;
  for (size_t i = 0; good && i < sizeof types / sizeof *types; i++)
    good = PyModule_AddType(module, types[i]) == 0;
  if (!good || !add_codes(module) || !add_closing_results(module)) Py_CLEAR(module);
  return module;
}
