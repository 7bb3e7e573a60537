/* ROS messages between C and Python, without the classes that ROS generates.
 *
 * rclpy makes such an object for each pose, twist and vector in a message, with default values
 * first: for thirty joints that takes longer than their dynamics. Here a message becomes a namespace
 * of namespaces, and arrays of float64 become numpy arrays. The introspection data that is compiled
 * with each message says where its fields are in memory. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>

#include <stdbool.h>
#include <string.h>

#include "rosidl_runtime_c/primitives_sequence.h"
#include "rosidl_runtime_c/string_functions.h"
#include "rosidl_typesupport_introspection_c/field_types.h"
#include "rosidl_typesupport_introspection_c/message_introspection.h"

typedef rosidl_typesupport_introspection_c__MessageMembers members_t;
typedef rosidl_typesupport_introspection_c__MessageMember member_t;

#define TYPE(name) rosidl_typesupport_introspection_c__ROS_TYPE_##name

static PyObject *namespace_type;

static const members_t *members_of(const rosidl_message_type_support_t *type)
{
  const rosidl_message_type_support_t *found =
      type == NULL ? NULL : type->func(type, "rosidl_typesupport_introspection_c");
  return found == NULL ? NULL : found->data;
}

/* Whether all fields are of types that are known here. */
static bool is_known(const members_t *members)
{
  for (uint32_t k = 0; members != NULL && k < members->member_count_; k++) {
    const member_t *member = &members->members_[k];
    if (member->is_array_ && (member->array_size_ != 0 || member->is_upper_bound_)) return false;
    switch (member->type_id_) {
    case TYPE(DOUBLE):
    case TYPE(BOOLEAN):
    case TYPE(INT32):
    case TYPE(UINT32):
      break;
    case TYPE(STRING):
      if (member->string_upper_bound_ != 0) return false;
      break;
    case TYPE(MESSAGE):
      if (!is_known(members_of(member->members_))) return false;
      break;
    default:
      return false;
    }
  }
  return members != NULL;
}

/* A type of messages: the names of its fields, and the layouts of messages inside. */
typedef struct layout {
  const members_t *members;
  PyObject **names;
  struct layout **inside; /* NULL for fields that are no messages */
} layout_t;

/* It is never freed, as classes of messages are not. */
static layout_t *new_layout(const members_t *members)
{
  const uint32_t count = members->member_count_;
  layout_t *layout = PyMem_Calloc(1, sizeof(layout_t));
  if (layout == NULL) return NULL;
  layout->members = members;
  layout->names = PyMem_Calloc(count, sizeof(PyObject *));
  layout->inside = PyMem_Calloc(count, sizeof(layout_t *));
  bool good = layout->names != NULL && layout->inside != NULL;
  for (uint32_t k = 0; good && k < count; k++) {
    const member_t *field = &members->members_[k];
    layout->names[k] = PyUnicode_InternFromString(field->name_);
    good = layout->names[k] != NULL;
    if (field->type_id_ != TYPE(MESSAGE)) continue;
    layout->inside[k] = new_layout(members_of(field->members_));
    good = good && layout->inside[k] != NULL;
  }
  return good ? layout : NULL;
}

/* Reading: NULL with an exception. */

static PyObject *read_fields(PyObject *object, const layout_t *layout, void *at);

static PyObject *read_one(const member_t *field, const layout_t *inside, void *at)
{
  const rosidl_runtime_c__String *text = at;
  switch (field->type_id_) {
  case TYPE(DOUBLE):
    return PyFloat_FromDouble(*(double *)at);
  case TYPE(BOOLEAN):
    return PyBool_FromLong(*(bool *)at);
  case TYPE(INT32):
    return PyLong_FromLong(*(int32_t *)at);
  case TYPE(UINT32):
    return PyLong_FromUnsignedLong(*(uint32_t *)at);
  case TYPE(STRING):
    return PyUnicode_DecodeUTF8(text->data, (Py_ssize_t)text->size, "replace");
  default:
    return read_fields(PyObject_CallNoArgs(namespace_type), inside, at);
  }
}

static PyObject *read_numbers(const rosidl_runtime_c__double__Sequence *numbers)
{
  npy_intp size = (npy_intp)numbers->size;
  PyObject *array = PyArray_SimpleNew(1, &size, NPY_DOUBLE);
  if (array != NULL && size > 0)
    memcpy(PyArray_DATA((PyArrayObject *)array), numbers->data, numbers->size * sizeof(double));
  return array;
}

static PyObject *read_field(const member_t *field, const layout_t *inside, void *at)
{
  if (!field->is_array_) return read_one(field, inside, at);
  if (field->type_id_ == TYPE(DOUBLE)) return read_numbers(at);
  const size_t size = field->size_function(at);
  PyObject *list = PyList_New((Py_ssize_t)size);
  for (size_t k = 0; list != NULL && k < size; k++) {
    PyObject *one = read_one(field, inside, field->get_function(at, k));
    if (one == NULL)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, (Py_ssize_t)k, one);
  }
  return list;
}

/* Give an object all fields of a message; the object. */
static PyObject *read_fields(PyObject *object, const layout_t *layout, void *at)
{
  for (uint32_t k = 0; object != NULL && k < layout->members->member_count_; k++) {
    const member_t *field = &layout->members->members_[k];
    PyObject *value = read_field(field, layout->inside[k], (char *)at + field->offset_);
    if (value == NULL || PyObject_SetAttr(object, layout->names[k], value) < 0) Py_CLEAR(object);
    Py_XDECREF(value);
  }
  return object;
}

/* Writing, into a message that is empty: false with an exception. */

static bool write_fields(const layout_t *layout, void *at, PyObject *object);

static bool write_integer(const member_t *field, void *at, PyObject *value)
{
  const bool is_signed = field->type_id_ == TYPE(INT32);
  const long long number = PyLong_AsLongLong(value);
  if (PyErr_Occurred()) return false;
  if (number < (is_signed ? INT32_MIN : 0) || number > (is_signed ? INT32_MAX : UINT32_MAX)) {
    PyErr_Format(PyExc_OverflowError, "%s: %R has more than 32 bits", field->name_, value);
    return false;
  }
  const uint32_t bits = (uint32_t)number;
  memcpy(at, &bits, sizeof bits);
  return true;
}

static bool write_text(rosidl_runtime_c__String *text, PyObject *value)
{
  Py_ssize_t size;
  const char *data = PyUnicode_AsUTF8AndSize(value, &size);
  if (data != NULL && rosidl_runtime_c__String__assignn(text, data, (size_t)size)) return true;
  if (data != NULL) PyErr_NoMemory();
  return false;
}

static bool write_one(const member_t *field, const layout_t *inside, void *at, PyObject *value)
{
  switch (field->type_id_) {
  case TYPE(DOUBLE):
    *(double *)at = PyFloat_AsDouble(value);
    return !PyErr_Occurred();
  case TYPE(BOOLEAN):
    *(bool *)at = PyObject_IsTrue(value) == 1;
    return !PyErr_Occurred();
  case TYPE(INT32):
  case TYPE(UINT32):
    return write_integer(field, at, value);
  case TYPE(STRING):
    return write_text(at, value);
  default:
    return write_fields(inside, at, value);
  }
}

static bool resize(const member_t *field, void *at, size_t size)
{
  if (field->resize_function(at, size)) return true;
  PyErr_NoMemory();
  return false;
}

static bool write_numbers(const member_t *field, void *at, PyObject *value)
{
  PyArrayObject *given =
      (PyArrayObject *)PyArray_FROMANY(value, NPY_DOUBLE, 1, 1, NPY_ARRAY_IN_ARRAY);
  if (given == NULL) return false;
  const size_t size = (size_t)PyArray_SIZE(given);
  const bool fits = resize(field, at, size);
  if (fits && size > 0) memcpy(field->get_function(at, 0), PyArray_DATA(given), 8 * size);
  Py_DECREF(given);
  return fits;
}

static bool write_field(const member_t *field, const layout_t *inside, void *at, PyObject *value)
{
  if (!field->is_array_) return write_one(field, inside, at, value);
  if (field->type_id_ == TYPE(DOUBLE)) return write_numbers(field, at, value);
  PyObject *given = PySequence_Fast(value, "a field of a message wants a sequence");
  if (given == NULL) return false;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(given);
  bool good = resize(field, at, (size_t)size);
  for (Py_ssize_t k = 0; good && k < size; k++)
    good = write_one(field, inside, field->get_function(at, (size_t)k),
                     PySequence_Fast_GET_ITEM(given, k));
  Py_DECREF(given);
  return good;
}

/* Reject fields that the message does not have: they are spelling mistakes. */
static bool has_no_more(const layout_t *layout, PyObject *object)
{
  if (!PyObject_TypeCheck(object, (PyTypeObject *)namespace_type)) return true;
  PyObject *fields = PyObject_GetAttrString(object, "__dict__"), *name;
  bool good = fields != NULL;
  const uint32_t count = layout->members->member_count_;
  if (good && PyDict_GET_SIZE(fields) != count) {
    for (Py_ssize_t next = 0; good && PyDict_Next(fields, &next, &name, NULL);) {
      uint32_t k = 0;
      while (k < count && PyUnicode_Compare(name, layout->names[k]) != 0) k++;
      good = k < count;
    }
    if (!good)
      PyErr_Format(PyExc_AttributeError, "%s has no field %R", layout->members->message_name_,
                   name);
  }
  Py_XDECREF(fields);
  return good;
}

/* Write what an object of any class has: a namespace, or a message of ROS. */
static bool write_fields(const layout_t *layout, void *at, PyObject *object)
{
  bool good = has_no_more(layout, object);
  for (uint32_t k = 0; good && k < layout->members->member_count_; k++) {
    const member_t *field = &layout->members->members_[k];
    PyObject *value = PyObject_GetAttr(object, layout->names[k]);
    good =
        value != NULL && write_field(field, layout->inside[k], (char *)at + field->offset_, value);
    Py_XDECREF(value);
  }
  return good;
}

/* The functions that rclpy calls. It does not pass the type of the message, so that each type
 * needs functions of its own. */

enum { MAX_KINDS = 32 };
static struct {
  const layout_t *layout;
  PyTypeObject *type;
} kinds[MAX_KINDS];
static int kind_count;

static PyObject *to_python(int kind, void *message)
{
  PyTypeObject *type = kinds[kind].type;
  PyObject *none = PyTuple_New(0);
  PyObject *object = none == NULL ? NULL : type->tp_new(type, none, NULL);
  Py_XDECREF(none);
  return read_fields(object, kinds[kind].layout, message);
}

#define KIND(k)                                                                                    \
  static PyObject *to_python_##k(void *message)                                                    \
  {                                                                                                \
    return to_python(k, message);                                                                  \
  }                                                                                                \
  static bool from_python_##k(PyObject *object, void *message)                                     \
  {                                                                                                \
    return write_fields(kinds[k].layout, message, object);                                         \
  }
#define EIGHT(do, a, b, c, d, e, f, g, h)                                                          \
  do (a) do(b) do(c) do(d) do(e) do(f) do(g) do(h)
#define ALL(do)                                                                                    \
  EIGHT(do, 0, 1, 2, 3, 4, 5, 6, 7)                                                                \
  EIGHT(do, 8, 9, 10, 11, 12, 13, 14, 15)                                                          \
  EIGHT(do, 16, 17, 18, 19, 20, 21, 22, 23) EIGHT(do, 24, 25, 26, 27, 28, 29, 30, 31)
ALL(KIND)
#define BOTH(k) {to_python_##k, from_python_##k},
static const struct {
  PyObject *(*to_python)(void *);
  bool (*from_python)(PyObject *, void *);
} functions[MAX_KINDS] = {ALL(BOTH)};

/* In Python. */

static PyObject *add(PyObject *Py_UNUSED(module), PyObject *args)
{
  PyObject *support, *make;
  if (!PyArg_ParseTuple(args, "OO", &support, &make)) return NULL;
  const members_t *members = members_of(PyCapsule_GetPointer(support, PyCapsule_GetName(support)));
  if (PyErr_Occurred()) return NULL;
  if (kind_count == MAX_KINDS || !is_known(members))
    return PyErr_Format(PyExc_TypeError, "it has fields that are not known here");
  layout_t *layout = new_layout(members);
  if (layout == NULL) return PyErr_NoMemory();
  const int kind = kind_count;
  PyObject *type = PyObject_CallFunction(
      make, "iNN", kind, PyCapsule_New((void *)functions[kind].to_python, NULL, NULL),
      PyCapsule_New((void *)functions[kind].from_python, NULL, NULL));
  if (type == NULL) return NULL;
  kinds[kind].layout = layout;
  kinds[kind].type = (PyTypeObject *)Py_NewRef(type);
  kind_count++;
  return type;
}

static PyObject *fill(PyObject *Py_UNUSED(module), PyObject *args)
{
  PyObject *object;
  int kind;
  if (!PyArg_ParseTuple(args, "Oi", &object, &kind)) return NULL;
  const members_t *members = kind >= 0 && kind < kind_count ? kinds[kind].layout->members : NULL;
  void *message = members == NULL ? NULL : calloc(1, members->size_of_);
  if (message == NULL) return PyErr_NoMemory();
  members->init_function(message, ROSIDL_RUNTIME_C_MSG_INIT_ALL);
  PyObject *result = read_fields(Py_NewRef(object), kinds[kind].layout, message);
  members->fini_function(message);
  free(message);
  return result;
}

static PyMethodDef methods[] = {
    {"add", add, METH_VARARGS,
     "add(type_support, make): a class for messages of a type, which `make` makes: its arguments\n"
     "are a number, and capsules of the functions to and from Python. TypeError if not known."},
    {"fill", fill, METH_VARARGS, "fill(object, number): give an object the fields of a new one."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "c_messages",
    .m_doc = "ROS messages as namespaces. Import rclpy first, which loads what it needs.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_c_messages(void)
{
  import_array();
  PyObject *types = PyImport_ImportModule("types");
  namespace_type = types == NULL ? NULL : PyObject_GetAttrString(types, "SimpleNamespace");
  Py_XDECREF(types);
  return namespace_type == NULL ? NULL : PyModule_Create(&module);
}
