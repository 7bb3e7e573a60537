/* Arrays for results, taken again once nobody has them any more. With cold caches numpy takes
   microseconds to make an array, more than most kernels take to fill it. */
#include "spare.h"

/* Whether nobody else knows an array, and it is still what it was made as. */
static int is_free(PyObject *object, int dimensions, const npy_intp *shape)
{
    const int made = NPY_ARRAY_CARRAY | NPY_ARRAY_OWNDATA;
    PyArrayObject *array = (PyArrayObject *)object;
    if (Py_REFCNT(object) != 1 || PyArray_NDIM(array) != dimensions
        || PyArray_TYPE(array) != NPY_DOUBLE || (PyArray_FLAGS(array) & made) != made
        || PyArray_BASE(array) != NULL || ((PyArrayObject_fields *)array)->weakreflist != NULL)
        return 0;
    for (int i = 0; i < dimensions; i++)
        if (PyArray_DIM(array, i) != shape[i])
            return 0;
    return 1;
}

PyObject *take_array(Spare *spare, int dimensions, const npy_intp *shape)
{
    for (int i = 0; i < MOST_SPARE; i++)
        if (spare->array[i] != NULL && is_free(spare->array[i], dimensions, shape))
            return Py_NewRef(spare->array[i]);
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
