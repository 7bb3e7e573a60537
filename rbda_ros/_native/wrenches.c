/* Forces on joints, and wrenches on links by name, as kernels take them: what
   `Dynamics._generalized` and `Inputs.body_wrenches` do, number by number. */
#include "calls.h"

int turns_forces(const Reader *reader, PyObject *kernel)
{
  const Kernel *forces = (const Kernel *)kernel;
  return PyObject_TypeCheck(kernel, &KernelType) && forces->ports == 3 && forces->inputs == 2
         && forces->size[0] == reader->nq && forces->size[1] == reader->nv
         && forces->size[2] == reader->ny;
}

int read_force(const Reader *reader, const Kernel *forces, PyObject *given, const double *q,
               double *into, const double **tau)
{
  npy_intp size = length_of(given);
  const double *numbers = vector_of(given, size);
  if (numbers == NULL || !all_within(numbers, size, reader->largest)) return 0;
  *tau = numbers;
  if (size == reader->ny) return 1;
  if (size != reader->nv || forces == NULL || forces->withdrawn) return 0;
  double *ports[] = {(double *)q, (double *)numbers, into};
  forces->evaluate(ports);
  *tau = into;
  return 1;
}

enum { BODY = 0, R = 1, P = 10, NUMBERS = 13 }; /* of a link: its body, and its place there */

static double turned(const double *row, const double *x)
{
  return (row[0] * x[0] + row[1] * x[1]) + row[2] * x[2];
}

/* Add a wrench on a link, force then moment, to those on bodies, moment then force. */
static void add_wrench(const double *link, const double *wrench, double *bodies)
{
  npy_intp body = (npy_intp)link[BODY];
  if (body == 0) /* which does not move */
    return;
  const double *p = link + P;
  double force[3], moment[3], *total = bodies + 6 * (body - 1);
  for (int i = 0; i < 3; i++) {
    force[i] = turned(link + R + 3 * i, wrench);
    moment[i] = turned(link + R + 3 * i, wrench + 3);
  }
  total[0] += moment[0] + (p[1] * force[2] - p[2] * force[1]);
  total[1] += moment[1] + (p[2] * force[0] - p[0] * force[2]);
  total[2] += moment[2] + (p[0] * force[1] - p[1] * force[0]);
  for (int i = 0; i < 3; i++) total[3 + i] += force[i];
}

int read_wrenches(const Reader *reader, PyObject *given, double *bodies, npy_intp size)
{
  const Links *links = &reader->links;
  PyObject *name, *value;
  Py_ssize_t at = 0;
  if (!PyDict_CheckExact(given) || links->place == NULL || size != 6 * links->bodies) return 0;
  memset(bodies, 0, size * sizeof *bodies);
  while (PyDict_Next(given, &at, &name, &value)) {
    const double *wrench = vector_of(value, 6);
    if (wrench == NULL || !all_within(wrench, 6, reader->largest) || !PyUnicode_CheckExact(name))
      return 0;
    PyObject *place = PyDict_GetItemWithError(links->place, name);
    if (place == NULL) {
      PyErr_Clear();
      return 0;
    }
    add_wrench(links->numbers + NUMBERS * PyLong_AsSsize_t(place), wrench, bodies);
  }
  return 1;
}

PyObject *reader_use_links(PyObject *self, PyObject *arguments)
{
  Links *links = &((Reader *)self)->links;
  PyObject *names, *given;
  npy_intp bodies;
  if (!PyArg_ParseTuple(arguments, "O!On:use_links", &PyTuple_Type, &names, &given, &bodies))
    return NULL;
  npy_intp count = PyTuple_GET_SIZE(names);
  const double *numbers = vector_of(given, NUMBERS * count);
  int good = numbers != NULL && links->place == NULL;
  for (npy_intp k = 0; good && k < count; k++)
    good = numbers[NUMBERS * k] >= 0.0 && numbers[NUMBERS * k] <= (double)bodies;
  if (!good) return PyErr_Format(PyExc_ValueError, "links and numbers do not belong together");
  links->numbers = PyMem_Malloc((NUMBERS * count + 1) * sizeof *numbers);
  PyObject *place = PyDict_New();
  good = links->numbers != NULL && place != NULL;
  for (npy_intp k = 0; good && k < count; k++) {
    PyObject *index = PyLong_FromSsize_t(k);
    good = index != NULL && PyDict_SetItem(place, PyTuple_GET_ITEM(names, k), index) == 0;
    Py_XDECREF(index);
  }
  if (!good) {
    Py_XDECREF(place);
    PyMem_Free(links->numbers);
    links->numbers = NULL;
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
  }
  memcpy(links->numbers, numbers, NUMBERS * count * sizeof *numbers);
  links->place = place;
  links->bodies = bodies;
  Py_RETURN_NONE;
}

void free_links(Links *links)
{
  Py_XDECREF(links->place);
  PyMem_Free(links->numbers);
}
