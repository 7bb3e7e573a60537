/* The target that compiled JAX code calls, through XLA's foreign-function interface.

   The handler finds the arguments and results of a call in XLA's memory. A kernel or an operation
   of the engine that is known for the call's key works on that memory: nothing is copied. All else
   (float32, a key that is new, arguments that are rejected) goes to one Python function as memory
   views. It returns None, or a code and a text that become XLA's error. */
#include "batch.h"
#include "xla_ffi.h"

static PyObject *evaluate; /* (key, arguments, results) -> None, or (code, text) */
static PyObject *targets;  /* dict: kernels and operations of the engine by key */

static XlaError *fail(const XlaCallFrame *frame, int code, const char *message)
{
  XlaErrorArgs args = {sizeof(XlaErrorArgs), NULL, message, code};
  return frame->api->create_error(&args);
}

/* The error that Python raised, which the function itself should have turned into a text. */
static XlaError *raised(const XlaCallFrame *frame)
{
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *text = value ? PyObject_Str(value) : NULL;
  const char *message = text ? PyUnicode_AsUTF8(text) : NULL;
  XlaError *error = fail(frame, XLA_INTERNAL, message ? message : "rbda_ros: a call failed");
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  PyErr_Clear();
  return error;
}

/* (view, shape) of a buffer of float64 or float32; another type is a mistake of ours. */
static PyObject *described(const XlaBuffer *buffer, int flags)
{
  static char nothing;
  Py_ssize_t size = buffer->type == XLA_F64 ? 8 : buffer->type == XLA_F32 ? 4 : 0;
  if (!size) {
    PyErr_SetString(PyExc_TypeError, "rbda_ros: compiled code passes no float64 and no float32");
    return NULL;
  }
  PyObject *shape = PyTuple_New(buffer->rank);
  if (!shape) return NULL;
  for (int64_t i = 0; i < buffer->rank; i++) {
    PyObject *length = PyLong_FromLongLong(buffer->dims[i]);
    if (!length) {
      Py_DECREF(shape);
      return NULL;
    }
    PyTuple_SET_ITEM(shape, i, length);
    size *= buffer->dims[i];
  }
  PyObject *view = PyMemoryView_FromMemory(size ? buffer->data : &nothing, size, flags);
  return view ? Py_BuildValue("(NNi)", view, shape, buffer->type == XLA_F64 ? 8 : 4) : NULL;
}

static PyObject *all_described(void **buffers, int64_t count, int flags)
{
  PyObject *all = PyTuple_New(count);
  for (int64_t i = 0; all && i < count; i++) {
    PyObject *one = described(buffers[i], flags);
    if (!one) {
      Py_CLEAR(all);
      break;
    }
    PyTuple_SET_ITEM(all, i, one);
  }
  return all;
}

/* Buffers of float64 (..., size) as rows, the leading axes of all being the same. */
static int add_rows(Rows *rows, void **buffers, int64_t count, int64_t axes)
{
  if (rows->ports + count > MAX_PORTS) return 0;
  for (int64_t i = 0; i < count; i++) {
    const XlaBuffer *buffer = buffers[i];
    if (buffer->type != XLA_F64 || buffer->rank < axes) return 0;
    npy_intp leading = 1, size = 1;
    for (int64_t k = 0; k < axes; k++) leading *= buffer->dims[k];
    for (int64_t k = axes; k < buffer->rank; k++) size *= buffer->dims[k];
    if (leading == 0 || (rows->count >= 0 && leading != rows->count)) return 0;
    rows->count = leading;
    rows->port[rows->ports] = buffer->data;
    rows->size[rows->ports++] = size;
  }
  return 1;
}

/* Whether the engine answered. */
static int call_engine(const XlaCallFrame *frame, int64_t key)
{
  PyObject *number = PyLong_FromLongLong(key);
  PyObject *target = number ? Py_XNewRef(PyDict_GetItemWithError(targets, number)) : NULL;
  Py_XDECREF(number);
  Rows rows = {.count = -1};
  int done = 0;
  if (target && frame->args.size > 0) {
    int64_t axes = ((const XlaBuffer *)frame->args.args[0])->rank - 1;
    done = axes >= 0 && add_rows(&rows, frame->args.args, frame->args.size, axes);
    rows.inputs = rows.ports;
    done = done && add_rows(&rows, frame->rets.rets, frame->rets.size, axes)
           && evaluate_rows(target, &rows);
  }
  Py_XDECREF(target);
  PyErr_Clear();
  return done;
}

static XlaError *call_python(const XlaCallFrame *frame, int64_t key)
{
  PyObject *given = all_described(frame->args.args, frame->args.size, PyBUF_READ);
  PyObject *found = given ? all_described(frame->rets.rets, frame->rets.size, PyBUF_WRITE) : NULL;
  PyObject *answer =
      found ? PyObject_CallFunction(evaluate, "LOO", (long long)key, given, found) : NULL;
  Py_XDECREF(given);
  Py_XDECREF(found);
  XlaError *error = NULL;
  int code;
  const char *message;
  if (!answer || (answer != Py_None && !PyArg_ParseTuple(answer, "is", &code, &message)))
    error = raised(frame);
  else if (answer != Py_None)
    error = fail(frame, code, message); /* which copies the text */
  Py_XDECREF(answer);
  return error;
}

/* What XLA calls: to ask for the version of the interface, and to execute. */
static XlaError *handle(XlaCallFrame *frame)
{
  XlaExtension *extension = frame->extension;
  if (extension && extension->type == XLA_METADATA) {
    XlaMetadata *metadata = ((XlaMetadataExtension *)extension)->metadata;
    metadata->version.major = XLA_MAJOR;
    metadata->version.minor = frame->api ? frame->api->version.minor : XLA_MINOR;
    metadata->traits = 0;
    return NULL;
  }
  if (frame->stage != XLA_EXECUTE) return NULL;
  if (frame->attrs.size != 1 || frame->attrs.types[0] != XLA_SCALAR)
    return fail(frame, XLA_INTERNAL, "rbda_ros: a call has one attribute, its key");
  const XlaScalar *key = frame->attrs.attrs[0];
  if (key->type != XLA_S64)
    return fail(frame, XLA_INTERNAL, "rbda_ros: the key of a call is an int64");
  if (!Py_IsInitialized()) return fail(frame, XLA_INTERNAL, "rbda_ros: the interpreter has ended");
  PyGILState_STATE lock = PyGILState_Ensure();
  int64_t number = *(const int64_t *)key->value;
  XlaError *error = call_engine(frame, number) ? NULL : call_python(frame, number);
  PyGILState_Release(lock);
  return error;
}

PyObject *xla_handler(PyObject *module, PyObject *arguments)
{
  PyObject *function, *known;
  if (!PyArg_ParseTuple(arguments, "OO!:xla_handler", &function, &PyDict_Type, &known)) return NULL;
  Py_XSETREF(evaluate, Py_NewRef(function));
  Py_XSETREF(targets, Py_NewRef(known));
  return PyCapsule_New((void *)handle, NULL, NULL);
}
