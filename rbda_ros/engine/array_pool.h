/* pool.c: float64 arrays of one shape that were given out before. */
#ifndef RBDA_ROS_ARRAY_POOL_H
#define RBDA_ROS_ARRAY_POOL_H

#include "engine.h"

/* A program that looks at one answer while it asks for the next has two at a time. */
enum { MAX_POOLED = 2 };

typedef struct {
  PyObject *array[MAX_POOLED];
  int oldest;
} ArrayPool;

/* An array whose numbers are any: a pool one that nobody has, or a new one. */
PyObject *take_array(ArrayPool *pool, int dimensions, const npy_intp *shape);
void clear_pool(ArrayPool *pool);

/* The same for large arrays of any shapes; small ones are always new. */
PyObject *take_large(LargeArrayPool *pool, int dimensions, const npy_intp *shape);
void clear_large_pool(LargeArrayPool *pool);

#endif
