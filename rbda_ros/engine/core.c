/* rbda_ros.engine.core: operations of robots, evaluated without the interpreter. */
#define RBDA_ROS_IMPORTS_NUMPY
#include "engine.h"

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

static PyMethodDef functions[] = {
    {"solve_cones", solve_cones, METH_VARARGS,
     "solve_cones(kinds, A (n, m, m), g (n, m), parameters (n, blocks), x (n, m), coulomb, "
     "tolerance, max_iterations) -> residual velocities (n), iterations (n). x is where to start, "
     "and the solution then."},
    {"frictional_steps", frictional_steps, METH_VARARGS,
     "frictional_steps(kinds, dt, recovery, tolerance, max_iterations, contact, parameters, start, "
     "yd, ydd, gaps, axes, J, X, A, J of other rows, b of other rows, inverse) -> yd, ydd, forces, "
     "impulses, b, velocities, J, residuals, iterations, compliance; None where the mass matrix is "
     "singular. See frictional_step.c."},
    {"contact_biases", contact_biases, METH_VARARGS,
     "contact_biases(dt, recovery, contact (c, 4), gaps (c), approach (c)) -> b (3c), R (3c)."},
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
  PyTypeObject *types[] = {&KernelType,      &StateValidatorType, &OperationCallType,
                           &ClosureCallType, &ContactCallType,    &MethodDispatchType,
                           &MethodTableType};
  PyObject *module = PyModule_Create(&definition);
  if (module == NULL) return NULL;
  rejection_type = PyStructSequence_NewType(&rejection_description);
  int good = rejection_type != NULL && PyModule_AddType(module, rejection_type) == 0;
  for (size_t i = 0; good && i < sizeof types / sizeof *types; i++)
    good = PyModule_AddType(module, types[i]) == 0;
  if (!good || !add_codes(module)) Py_CLEAR(module);
  return module;
}
