/* Configurations of the machine, read from the records of configuration.py by their names. */
#ifndef RBDA_ROS_READ_CONFIG_H
#define RBDA_ROS_READ_CONFIG_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "machine.h"

/* Give a module of Python the lists of configuration.h, and constants. */
bool add_lists(PyObject *module);
/* NULL with an exception. It holds a reference to the object, whose arrays it works on. */
config_t *read_config(PyObject *configuration);
/* With the interpreter. */
void release_config(config_t *config);

#endif
