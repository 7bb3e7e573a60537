/* Arrays for results, taken again once nobody has them any more. With cold caches numpy takes
   microseconds to make an array, more than most kernels take to fill it. */
#include "spare.h"

/* Whether an array is still what it was made as, and nobody waits for its end. */
static int is_unchanged(PyObject *object, int dimensions, const npy_intp *shape)
{
    const int made = NPY_ARRAY_CARRAY | NPY_ARRAY_OWNDATA;
    PyArrayObject *array = (PyArrayObject *)object;
    if (PyArray_NDIM(array) != dimensions || PyArray_DESCR(array) != numpy.number
        || (PyArray_FLAGS(array) & made) != made || PyArray_BASE(array) != NULL
        || ((PyArrayObject_fields *)array)->weakreflist != NULL)
        return 0;
    for (int i = 0; i < dimensions; i++)
        if (PyArray_DIM(array, i) != shape[i])
            return 0;
    return 1;
}

PyObject *take_array(Spare *spare, int dimensions, const npy_intp *shape)
{
    for (int i = 0; i < MOST_SPARE; i++) {
        PyObject *array = spare->array[i];
        if (array == NULL || Py_REFCNT(array) != 1)
            continue; /* somebody has it */
        if (is_unchanged(array, dimensions, shape))
            return Py_NewRef(array);
        Py_CLEAR(spare->array[i]);
    }
    PyObject *array = PyArray_SimpleNew(dimensions, shape, NPY_DOUBLE);
    if (array != NULL) {
        Py_XSETREF(spare->array[spare->oldest], Py_NewRef(array));
        spare->oldest = (spare->oldest + 1) % MOST_SPARE;
    }
    return array;
}

void clear_spare(Spare *spare)
{
    for (int i = 0; i < MOST_SPARE; i++)
        Py_CLEAR(spare->array[i]);
}
