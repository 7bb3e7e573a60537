/* How long a thread runs on before the scheduler of Linux looks for another. */
#ifndef RBDA_ROS_SLICE_H
#define RBDA_ROS_SLICE_H

#include <Python.h>

/* (thread, nanoseconds), for one of the ordinary policies. One that asks for less than the thread
 * that runs takes its place when it wakes up, from Linux 6.12 on; older ones take no notice. */
PyObject *set_slice(PyObject *module, PyObject *args);

#endif
