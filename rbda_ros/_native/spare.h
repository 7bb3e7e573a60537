/* spare.c: float64 arrays of one shape that were given out before. */
#ifndef RBDA_ROS_SPARE_H
#define RBDA_ROS_SPARE_H

#include "calls.h"

/* A program that looks at one answer while it asks for the next has two at a time. */
enum { MOST_SPARE = 2 };

typedef struct {
  PyObject *array[MOST_SPARE];
  int oldest;
} Spare;

/* An array whose numbers are any: a spare one that nobody has, or a new one. */
PyObject *take_array(Spare *spare, int dimensions, const npy_intp *shape);
void clear_spare(Spare *spare);

/* The same for large arrays of any shapes; small ones are always new. */
PyObject *take_large(LargeSpare *spare, int dimensions, const npy_intp *shape);
void clear_large(LargeSpare *spare);

#endif
