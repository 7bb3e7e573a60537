/* Arrays for results, reused once nobody else refers to them. With cold caches numpy takes
   microseconds to make an array, longer than most kernels take to fill it. For a large array the
   system clears every page first, which takes longer than most kernels take to write it. */
#include "engine.h"

/* Bytes from which an array is large: the system provides and clears such memory page by page. And
   the bytes that the pool of a robot may hold. */
enum { LARGE = 1 << 17, MAX_BYTES = 1 << 26 };

/* Whether an array is as it was made, except for its shape, and has no weak references. */
static int is_plain(PyObject *object)
{
  const int made = NPY_ARRAY_CARRAY | NPY_ARRAY_OWNDATA;
  PyArrayObject *array = (PyArrayObject *)object;
  return PyArray_DESCR(array) == numpy.number && (PyArray_FLAGS(array) & made) == made
         && PyArray_BASE(array) == NULL && ((PyArrayObject_fields *)array)->weakreflist == NULL;
}

static int is_unchanged(PyObject *object, int dimensions, const npy_intp *shape)
{
  PyArrayObject *array = (PyArrayObject *)object;
  if (PyArray_NDIM(array) != dimensions || !is_plain(object)) return 0;
  for (int i = 0; i < dimensions; i++)
    if (PyArray_DIM(array, i) != shape[i]) return 0;
  return 1;
}

PyObject *take_array(ArrayPool *pool, int dimensions, const npy_intp *shape)
{
  for (int i = 0; i < MAX_POOLED; i++) {
    PyObject *array = pool->array[i];
    if (array == NULL || Py_REFCNT(array) != 1) continue; /* in use */
    if (is_unchanged(array, dimensions, shape)) return Py_NewRef(array);
    Py_CLEAR(pool->array[i]);
  }
  PyObject *array = PyArray_SimpleNew(dimensions, shape, NPY_DOUBLE);
  if (array != NULL) {
    Py_XSETREF(pool->array[pool->oldest], Py_NewRef(array));
    pool->oldest = (pool->oldest + 1) % MAX_POOLED;
  }
  return array;
}

void clear_pool(ArrayPool *pool)
{
  for (int i = 0; i < MAX_POOLED; i++) Py_CLEAR(pool->array[i]);
}

/* Put an array in front. It replaces the one at `from`; those before move up by one. */
static void put_in_front(LargeArrayPool *pool, int from, PyObject *array)
{
  memmove(pool->array + 1, pool->array, from * sizeof *pool->array);
  pool->array[0] = array;
}

static void drop_too_much(LargeArrayPool *pool)
{
  npy_intp bytes = 0;
  for (int i = 0; i < MAX_LARGE; i++) {
    bytes += pool->array[i] ? PyArray_NBYTES((PyArrayObject *)pool->array[i]) : 0;
    if (bytes > MAX_BYTES) Py_CLEAR(pool->array[i]);
  }
}

PyObject *take_large(LargeArrayPool *pool, int dimensions, const npy_intp *shape)
{
  for (int i = 0; i < MAX_LARGE; i++) {
    PyObject *array = pool->array[i];
    if (array == NULL || Py_REFCNT(array) != 1) continue; /* in use */
    if (is_unchanged(array, dimensions, shape)) {
      put_in_front(pool, i, array);
      return Py_NewRef(array);
    }
    if (!is_plain(array)) Py_CLEAR(pool->array[i]);
  }
  PyObject *array = PyArray_SimpleNew(dimensions, shape, NPY_DOUBLE);
  npy_intp bytes = array == NULL ? 0 : PyArray_NBYTES((PyArrayObject *)array);
  if (bytes >= LARGE && bytes <= MAX_BYTES) {
    PyObject *last = pool->array[MAX_LARGE - 1];
    put_in_front(pool, MAX_LARGE - 1, Py_NewRef(array));
    Py_XDECREF(last);
    drop_too_much(pool);
  }
  return array;
}

void clear_large_pool(LargeArrayPool *pool)
{
  for (int i = 0; i < MAX_LARGE; i++) Py_CLEAR(pool->array[i]);
}
