#include "held.h"

const Py_buffer *hold(held_t *held, PyObject *object, int flags)
{
  if (held->count == MOST_VIEWS) {
    PyErr_SetString(PyExc_ValueError, "a plan has too many arrays");
    return NULL;
  }
  Py_buffer *view = &held->views[held->count];
  if (PyObject_GetBuffer(object, view, flags) < 0) return NULL;
  held->count++;
  return view;
}

bool hold_vector(held_t *held, PyObject *object, vector_t *vector)
{
  const Py_buffer *view = hold(held, object, PyBUF_WRITABLE);
  if (view == NULL) return false;
  *vector = (vector_t){view->buf, view->len / (Py_ssize_t)sizeof(double)};
  return true;
}

bool hold_times(held_t *held, PyObject *object, times_t *times)
{
  const Py_buffer *view = hold(held, object, PyBUF_WRITABLE);
  if (view == NULL) return false;
  *times = (times_t){view->buf, view->len / (Py_ssize_t)sizeof(int64_t)};
  return true;
}

bool hold_order(held_t *held, PyObject *object, Py_ssize_t size, order_t *order)
{
  const Py_buffer *view = hold(held, object, PyBUF_SIMPLE);
  if (view == NULL) return false;
  *order = (order_t){view->buf, view->len / (Py_ssize_t)sizeof(int64_t)};
  for (Py_ssize_t k = 0; k < order->count; k++) {
    if (order->at[k] < 0 || order->at[k] >= size) {
      PyErr_SetString(PyExc_ValueError, "a place is beyond the end");
      return false;
    }
  }
  return true;
}

bool fits(bool so, const char *what)
{
  if (!so) PyErr_Format(PyExc_ValueError, "%s does not fit", what);
  return so;
}

void let_go(held_t *held)
{
  while (held->count > 0) PyBuffer_Release(&held->views[--held->count]);
}
