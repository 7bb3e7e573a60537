/* Arrays of Python that a plan works on: it holds them, and has none of its own. Every size and
 * place is checked when a plan is made, so that none has to be later. */
#ifndef RBDA_ROS_HELD_H
#define RBDA_ROS_HELD_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

enum { MOST_VIEWS = 384 };

typedef struct {
  Py_buffer views[MOST_VIEWS];
  int count;
} held_t;

/* Numbers of a message, or of the robot. */
typedef struct {
  double *at;
  Py_ssize_t count;
} vector_t;
/* Places to take numbers from. */
typedef struct {
  const int64_t *at;
  Py_ssize_t count;
} order_t;
/* [ns] */
typedef struct {
  int64_t *at;
  Py_ssize_t count;
} times_t;

/* Each is false, or NULL, with an exception. */
const Py_buffer *hold(held_t *held, PyObject *object, int flags);
bool hold_vector(held_t *held, PyObject *object, vector_t *vector);
bool hold_times(held_t *held, PyObject *object, times_t *times);
/* Places in something that has `size` numbers. */
bool hold_order(held_t *held, PyObject *object, Py_ssize_t size, order_t *order);
bool fits(bool so, const char *what);

void let_go(held_t *held);

#endif
