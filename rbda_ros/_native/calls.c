/* rbda_ros._native.calls: kernels and the methods around them, called without the interpreter. */
#define RBDA_ROS_IMPORTS_NUMPY
#include "calls.h"

Numpy numpy;

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "rbda_ros._native.calls",
    .m_doc = "Kernels in machine code, and the methods around them with their checks.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit_calls(void)
{
  import_array();
  numpy = (Numpy){&PyArray_Type, PyArray_DescrFromType(NPY_DOUBLE)};
  PyTypeObject *types[] = {&KernelType,      &ReaderType, &CheckedCallType, &ClosingType,
                           &ContactCallType, &MethodType, &AnsweringType};
  PyObject *module = PyModule_Create(&definition);
  if (module == NULL) return NULL;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (PyModule_AddType(module, types[i]) < 0) {
      Py_DECREF(module);
      return NULL;
    }
  return module;
}
