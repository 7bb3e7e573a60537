/* Converts forces on joints, and wrenches on links by name, to what kernels take. */
#include "engine.h"

int turns_forces(const StateValidator *validator, PyObject *kernel)
{
  const Kernel *forces = (const Kernel *)kernel;
  return PyObject_TypeCheck(kernel, &KernelType) && forces->ports == 3 && forces->inputs == 2
         && forces->size[0] == validator->nq && forces->size[1] == validator->nv
         && forces->size[2] == validator->ny;
}

Status read_force(const StateValidator *validator, const Kernel *forces, PyObject *given,
                  const double *q, double *into, const double **tau)
{
  npy_intp size = length_of(given);
  const double *numbers = vector_of(given, size);
  if (numbers == NULL || !all_within(numbers, size, validator->largest)) return UNREAD;
  *tau = numbers;
  if (size == validator->ny) return GOOD;
  if (size != validator->nv || forces == NULL) return UNREAD;
  double *ports[] = {(double *)q, (double *)numbers, into};
  *tau = into;
  return run_kernel(forces, ports) ? GOOD : FAILED;
}

PyObject *body_wrenches(const StateValidator *validator, PyObject *given)
{
  if (Py_TYPE(given) != validator->wrenches_type) return NULL;
  PyObject *values = PyObject_GetAttrString(given, "values");
  if (values == NULL) PyErr_Clear();
  return values;
}

Status read_wrenches(const StateValidator *validator, PyObject *given, double *bodies,
                     npy_intp size)
{
  const Links *links = &validator->links;
  PyObject *name, *value, *values = body_wrenches(validator, given);
  Py_ssize_t at = 0;
  if (values != NULL) {
    const double *numbers = vector_of(values, size);
    if (numbers != NULL) memcpy(bodies, numbers, size * sizeof *numbers);
    Py_DECREF(values);
    return numbers == NULL ? UNREAD : GOOD;
  }
  if (!PyDict_CheckExact(given) || size != 6 * links->bodies) return UNREAD;
  memset(bodies, 0, size * sizeof *bodies);
  while (PyDict_Next(given, &at, &name, &value)) {
    const double *wrench = vector_of(value, 6);
    if (wrench == NULL || !all_within(wrench, 6, validator->largest) || !PyUnicode_CheckExact(name))
      return UNREAD;
    PyObject *place = PyDict_GetItemWithError(links->place, name);
    if (place == NULL) {
      PyErr_Clear();
      return UNREAD;
    }
    add_link_wrench(links->numbers + LINK_NUMBERS * PyLong_AsSsize_t(place), wrench, bodies);
  }
  return GOOD;
}

PyObject *add_wrenches(PyObject *self, PyObject *arguments)
{
  const Links *links = &((StateValidator *)self)->links;
  PyObject *name, *given, *into;
  if (!PyArg_ParseTuple(arguments, "UOO:add_wrenches", &name, &given, &into)) return NULL;
  PyObject *place = PyDict_GetItemWithError(links->place, name);
  const npy_intp size = length_of(given), count = size / 6;
  const double *wrenches = vector_of(given, 6 * count);
  double *bodies = vector_of(into, 6 * links->bodies * count);
  if (place == NULL || wrenches == NULL || bodies == NULL
      || !PyArray_ISWRITEABLE((PyArrayObject *)into)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "wrenches and link do not fit");
    return NULL;
  }
  const double *link = links->numbers + LINK_NUMBERS * PyLong_AsSsize_t(place);
  for (npy_intp k = 0; k < count; k++)
    add_link_wrench(link, wrenches + 6 * k, bodies + 6 * links->bodies * k);
  Py_RETURN_NONE;
}

int set_links(Links *links, PyObject *names, PyObject *given, npy_intp bodies)
{
  npy_intp count = PyTuple_GET_SIZE(names);
  const double *numbers = vector_of(given, LINK_NUMBERS * count);
  int good = numbers != NULL;
  for (npy_intp k = 0; good && k < count; k++)
    good = numbers[LINK_NUMBERS * k] >= 0.0 && numbers[LINK_NUMBERS * k] <= (double)bodies;
  if (!good) {
    PyErr_SetString(PyExc_ValueError, "links and numbers do not belong together");
    return 0;
  }
  links->numbers = PyMem_Malloc((LINK_NUMBERS * count + 1) * sizeof *numbers);
  links->place = PyDict_New();
  links->bodies = bodies;
  good = links->numbers != NULL && links->place != NULL;
  for (npy_intp k = 0; good && k < count; k++) {
    PyObject *index = PyLong_FromSsize_t(k);
    good = index != NULL && PyDict_SetItem(links->place, PyTuple_GET_ITEM(names, k), index) == 0;
    Py_XDECREF(index);
  }
  if (!good) {
    if (!PyErr_Occurred()) PyErr_NoMemory();
    return 0;
  }
  memcpy(links->numbers, numbers, LINK_NUMBERS * count * sizeof *numbers);
  return 1;
}

void free_links(Links *links)
{
  Py_XDECREF(links->place);
  PyMem_Free(links->numbers);
}
