/* An object that has methods which native code answers: a callable for each of them, or several
   (see method.c). */
#include "calls.h"

static PyObject *answering_answer_by(PyObject *self, PyObject *arguments)
{
  Py_ssize_t index;
  PyObject *call;
  if (!PyArg_ParseTuple(arguments, "nO:_answer_by", &index, &call)) return NULL;
  if (index < 0 || index >= MOST_METHODS)
    return PyErr_Format(PyExc_IndexError, "there are at most %d methods", MOST_METHODS);
  if (PyTuple_CheckExact(call) && PyTuple_GET_SIZE(call) != 4)
    return PyErr_Format(PyExc_ValueError, "four are needed, with and without wrenches");
  Py_XSETREF(((Answering *)self)->call[index], call == Py_None ? NULL : Py_NewRef(call));
  Py_RETURN_NONE;
}

static void answering_dealloc(PyObject *self)
{
  for (int i = 0; i < MOST_METHODS; i++) Py_XDECREF(((Answering *)self)->call[i]);
  Py_TYPE(self)->tp_free(self);
}

static PyMethodDef answering_methods[] = {
    {"_answer_by", answering_answer_by, METH_VARARGS,
     "_answer_by(index of a method, a callable, a dict of callables by option, a tuple of four,"
     " or None)."},
    {NULL},
};

PyTypeObject AnsweringType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros._native.calls.Answering",
    .tp_doc = "A base of classes whose methods native code answers.",
    .tp_basicsize = sizeof(Answering),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = answering_dealloc,
    .tp_methods = answering_methods,
};
