/* `rbda_ros.control.native`: the machine and the reader of messages, for Python.
 *
 * The interpreter is released before the lock of the machine is taken, and taken back after it was
 * given up: the thread of the stream may wait for the interpreter while it has the lock. */
#include "machine.h"
#include "read_config.h"

#include <stdlib.h>
#include <string.h>

/* What leaves the machine while its lock is held, until the interpreter takes it: messages that it
 * emits, or numbers and copies of arrays with a name. */
typedef struct {
  const char *name; /* NULL for a message */
  enum { INTEGER, NUMBER, BYTES } kind;
  int64_t integer; /* the topic of a message */
  double number;
  uint8_t *data;
  size_t size;
} item_t;

typedef struct {
  item_t *items;
  size_t count;
  bool listened, failed; /* failed: there was no memory for an item */
} collected_t;

static void add(collected_t *collected, item_t item)
{
  item_t *items = realloc(collected->items, (collected->count + 1) * sizeof *items);
  if (items == NULL) {
    free(item.data);
    collected->failed = true;
    return;
  }
  items[collected->count++] = item;
  collected->items = items;
}

static void add_integer(collected_t *collected, const char *name, int64_t value)
{
  add(collected, (item_t){.name = name, .kind = INTEGER, .integer = value});
}

static void add_number(collected_t *collected, const char *name, double value)
{
  add(collected, (item_t){.name = name, .kind = NUMBER, .number = value});
}

static void add_copy(collected_t *collected, const char *name, int topic, const void *data,
                     size_t size)
{
  uint8_t *copied = malloc(size + 1);
  collected->failed |= copied == NULL;
  if (copied == NULL) return;
  if (size > 0) memcpy(copied, data, size);
  add(collected, (item_t){name, BYTES, topic, 0.0, copied, size});
}

static void add_bytes(collected_t *collected, const char *name, const void *data, size_t size)
{
  add_copy(collected, name, 0, data, size);
}

static void add_numbers(collected_t *collected, const char *name, const double *data, size_t count)
{
  add_copy(collected, name, 0, data, sizeof *data * count);
}

static void collect(void *context, int topic, const uint8_t *data, size_t size)
{
  add_copy(context, NULL, topic, data, size);
}

static bool is_listened(void *context, int topic)
{
  (void)topic;
  return ((const collected_t *)context)->listened;
}

static PyObject *bytes_of(const void *data, size_t size)
{
  return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
}

static PyObject *value_of(const item_t *item)
{
  if (item->kind == INTEGER) return PyLong_FromLongLong(item->integer);
  if (item->kind == NUMBER) return PyFloat_FromDouble(item->number);
  return bytes_of(item->data, item->size);
}

/* Free what was collected; the result, or an exception where some of it is missing. */
static PyObject *released(collected_t *collected, PyObject *result)
{
  for (size_t k = 0; k < collected->count; k++) free(collected->items[k].data);
  free(collected->items);
  if (!collected->failed) return result;
  Py_XDECREF(result);
  return PyErr_NoMemory();
}

/* The list of (topic, bytes); what was collected is freed. */
static PyObject *list_of(collected_t *collected)
{
  PyObject *list = PyList_New(0);
  for (size_t k = 0; list != NULL && k < collected->count; k++) {
    const item_t *item = &collected->items[k];
    PyObject *pair = Py_BuildValue("LN", (long long)item->integer, value_of(item));
    if (pair == NULL || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return released(collected, list);
}

/* The dictionary of names; what was collected is freed. */
static PyObject *dict_of(collected_t *collected)
{
  PyObject *dict = PyDict_New();
  for (size_t k = 0; dict != NULL && k < collected->count; k++) {
    PyObject *value = value_of(&collected->items[k]);
    if (value == NULL || PyDict_SetItemString(dict, collected->items[k].name, value) < 0)
      Py_CLEAR(dict);
    Py_XDECREF(value);
  }
  return released(collected, dict);
}

/* For the adapter. */

static bool locked_feed(machine_t *machine, const sink_t *sink, int topic, const uint8_t *data,
                        size_t size, moment_t moment)
{
  pthread_mutex_lock(&machine->lock);
  const bool asks = machine_feed(machine, sink, topic, data, size, moment);
  pthread_mutex_unlock(&machine->lock);
  return asks;
}

static int64_t locked_tick(machine_t *machine, const sink_t *sink, moment_t moment)
{
  pthread_mutex_lock(&machine->lock);
  const int64_t next = machine_tick(machine, sink, moment);
  pthread_mutex_unlock(&machine->lock);
  return next;
}

static void locked_stop(machine_t *machine, const sink_t *sink, moment_t moment)
{
  pthread_mutex_lock(&machine->lock);
  machine_stop(machine, sink, moment);
  pthread_mutex_unlock(&machine->lock);
}

typedef struct {
  PyObject_HEAD machine_t machine;
  machine_api_t api;
  bool ready;
} Machine;

#define LOCKED(self) Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&(self)->machine.lock);
#define UNLOCKED(self)                                                                             \
  pthread_mutex_unlock(&(self)->machine.lock);                                                     \
  Py_END_ALLOW_THREADS

static int Machine_init(Machine *self, PyObject *args, PyObject *kwargs)
{
  static char *names[] = {NULL};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "", names)) return -1;
  if (self->ready) return 0;
  self->ready = true;
  self->api = (machine_api_t){&self->machine, locked_feed, locked_tick, locked_stop};
  if (machine_init(&self->machine)) return 0;
  PyErr_NoMemory();
  return -1;
}

static void Machine_dealloc(Machine *self)
{
  if (self->ready) {
    release_config(machine_configure(&self->machine, NULL));
    machine_free(&self->machine);
  }
  Py_TYPE(self)->tp_free(self);
}

static PyObject *Machine_configure(Machine *self, PyObject *configuration)
{
  config_t *config = NULL, *before;
  if (configuration != Py_None && (config = read_config(configuration)) == NULL) return NULL;
  LOCKED(self)
  before = machine_configure(&self->machine, config);
  UNLOCKED(self)
  const bool failed = config != NULL && before == config;
  release_config(before);
  if (failed) return PyErr_NoMemory();
  Py_RETURN_NONE;
}

static PyObject *Machine_feed(Machine *self, PyObject *args, PyObject *kwargs)
{
  static char *names[] = {"topic", "data", "now", "steady", "listened", NULL};
  int topic, listened = 1;
  Py_buffer data;
  long long now, steady;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iy*LL|p", names, &topic, &data, &now, &steady,
                                   &listened))
    return NULL;
  collected_t collected = {.listened = listened};
  const sink_t sink = {&collected, collect, is_listened};
  bool asks;
  const moment_t moment = {now, steady};
  LOCKED(self)
  asks = machine_feed(&self->machine, &sink, topic, data.buf, (size_t)data.len, moment);
  UNLOCKED(self)
  PyBuffer_Release(&data);
  PyObject *list = list_of(&collected);
  return list == NULL ? NULL : Py_BuildValue("NN", list, PyBool_FromLong(asks));
}

static PyObject *Machine_tick(Machine *self, PyObject *args)
{
  long long now, steady;
  int64_t next;
  if (!PyArg_ParseTuple(args, "LL", &now, &steady)) return NULL;
  collected_t collected = {.listened = true};
  const sink_t sink = {&collected, collect, is_listened};
  LOCKED(self)
  next = machine_tick(&self->machine, &sink, (moment_t){now, steady});
  UNLOCKED(self)
  PyObject *list = list_of(&collected);
  return list == NULL ? NULL : Py_BuildValue("NL", list, (long long)next);
}

static PyObject *Machine_stop(Machine *self, PyObject *args)
{
  long long now, steady;
  if (!PyArg_ParseTuple(args, "LL", &now, &steady)) return NULL;
  collected_t collected = {.listened = true};
  const sink_t sink = {&collected, collect, is_listened};
  LOCKED(self)
  machine_stop(&self->machine, &sink, (moment_t){now, steady});
  UNLOCKED(self)
  return list_of(&collected);
}

static PyObject *Machine_counts(Machine *self, PyObject *Py_UNUSED(none))
{
  machine_t *m = &self->machine;
  collected_t found = {0};
  LOCKED(self)
  add_bytes(&found, "rejected", m->counts, sizeof m->counts);
  add_integer(&found, "limited", m->limited);
  add_number(&found, "contradiction", m->contradiction);
  add_integer(&found, "contradicting", m->contradicting);
  add_number(&found, "external", m->state == NULL ? Py_NAN : m->state->largest_external);
  m->contradiction = 0.0;
  m->contradicting = NOWHERE;
  UNLOCKED(self)
  return dict_of(&found);
}

static PyObject *Machine_rejection(Machine *self, PyObject *Py_UNUSED(none))
{
  const machine_t *m = &self->machine;
  collected_t found = {0};
  LOCKED(self)
  const rejection_t *last = &m->rejection;
  add_integer(&found, "code", last->code);
  add_integer(&found, "topic", last->topic);
  add_integer(&found, "joint", last->detail.joint);
  add_number(&found, "value", last->detail.value);
  add_number(&found, "other", last->detail.other);
  add_bytes(&found, "data", last->data, last->size);
  add_bytes(&found, "mask", last->detail.mask, m->state == NULL ? 0 : (size_t)m->state->joints);
  UNLOCKED(self)
  return dict_of(&found);
}

/* Take what Python should prepare; empty for nothing. */
static PyObject *Machine_request(Machine *self, PyObject *Py_UNUSED(none))
{
  machine_t *m = &self->machine;
  collected_t found = {0};
  LOCKED(self)
  request_t *asked = &m->request;
  if (m->state != NULL && (asked->route || asked->command || asked->search)) {
    const size_t joints = (size_t)m->state->joints;
    add_integer(&found, "route", asked->route);
    add_integer(&found, "command", asked->command);
    add_integer(&found, "search", asked->search);
    add_bytes(&found, "measured", asked->measured, joints);
    if (asked->has_wanted) add_bytes(&found, "wanted", asked->wanted, joints);
    add_bytes(&found, "named", asked->named, joints);
    add_integer(&found, "fields", asked->fields);
    if (asked->has_damped) add_bytes(&found, "damped", asked->damped, joints);
    add_bytes(&found, "chosen", asked->chosen, joints);
    add_numbers(&found, "position", asked->position, joints);
    add_numbers(&found, "guess", asked->guess, (size_t)m->state->nq);
    asked->route = asked->command = asked->search = false;
  }
  UNLOCKED(self)
  return dict_of(&found);
}

static PyObject *Machine_start_from(Machine *self, PyObject *args)
{
  Py_buffer q;
  bool fits = false;
  if (!PyArg_ParseTuple(args, "y*", &q)) return NULL;
  LOCKED(self)
  state_t *s = self->machine.state;
  fits = s != NULL && (size_t)q.len == sizeof(double) * (size_t)s->nq;
  if (fits) memcpy(s->q, q.buf, (size_t)q.len);
  UNLOCKED(self)
  PyBuffer_Release(&q);
  return PyBool_FromLong(fits);
}

static PyObject *Machine_records(Machine *self, PyObject *args)
{
  int of_commands;
  if (!PyArg_ParseTuple(args, "p", &of_commands)) return NULL;
  records_t *records = of_commands ? &self->machine.commands : &self->machine.states;
  collected_t found = {0};
  LOCKED(self)
  const size_t kept = records->count < MAX_RECORDS ? records->count : MAX_RECORDS;
  add_integer(&found, "count", (int64_t)records->count);
  add_bytes(&found, "rows", records->records, kept * sizeof *records->records);
  records->count = 0;
  UNLOCKED(self)
  return dict_of(&found);
}

static PyObject *Machine_state(Machine *self, PyObject *Py_UNUSED(none))
{
  collected_t found = {0};
  LOCKED(self)
  const state_t *s = self->machine.state;
  if (s != NULL && s->answered) {
    const size_t ny = (size_t)s->ny, nq = (size_t)s->nq;
    add_integer(&found, "time", s->state_time);
    add_numbers(&found, "velocity", s->state, ny);
    add_numbers(&found, "q", s->state + ny, nq);
    add_numbers(&found, "efforts", s->state + ny + nq, (size_t)s->actuated);
    add_bytes(&found, "joints", s->state_joints, (size_t)s->joints);
  }
  UNLOCKED(self)
  return dict_of(&found);
}

static PyObject *Machine_inputs(Machine *self, PyObject *Py_UNUSED(none))
{
  collected_t found = {0};
  int index = NOWHERE;
  LOCKED(self)
  const machine_t *m = &self->machine;
  if (m->route != NULL && m->config != NULL) {
    const kernel_t *kernel = &m->route->kernel;
    index = (int)(m->route - m->config->routes);
    for (int k = 0; k < kernel->count - 3; k++)
      add_copy(&found, NULL, k, kernel->ports[k], sizeof(double) * kernel->sizes[k]);
  }
  UNLOCKED(self)
  if (index == NOWHERE) Py_RETURN_NONE;
  PyObject *list = list_of(&found);
  return list == NULL ? NULL : Py_BuildValue("iN", index, list);
}

static PyObject *Machine_api(Machine *self, void *Py_UNUSED(closure))
{
  return PyCapsule_New(&self->api, MACHINE_API, NULL);
}

static PyMethodDef machine_methods[] = {
    {"configure", (PyCFunction)Machine_configure, METH_O,
     "Go on with another `Configuration`, between two messages; None to forget the model."},
    {"feed", (PyCFunction)(void (*)(void))Machine_feed, METH_VARARGS | METH_KEYWORDS,
     "feed(topic, data, now, steady, listened=True): take a message; the messages that go out, as\n"
     "(topic, bytes), and whether something new is requested."},
    {"tick", (PyCFunction)Machine_tick, METH_VARARGS,
     "tick(now, steady): what goes out because nothing came, and when to ask again (steady)."},
    {"stop", (PyCFunction)Machine_stop, METH_VARARGS,
     "stop(now, steady): what ends the topics of motors; all inputs are forgotten."},
    {"counts", (PyCFunction)Machine_counts, METH_NOARGS,
     "Rejections by code (int64), limited efforts, the largest contradiction since the last call."},
    {"rejection", (PyCFunction)Machine_rejection, METH_NOARGS, "The last rejection."},
    {"request", (PyCFunction)Machine_request, METH_NOARGS,
     "Take what should be prepared; empty for nothing. Masks are bytes, numbers float64 bytes."},
    {"start_from", (PyCFunction)Machine_start_from, METH_VARARGS,
     "start_from(q): close the loops from here the next time; whether it fits the model."},
    {"records", (PyCFunction)Machine_records, METH_VARARGS,
     "records(of_commands): how many answers there were, and rows of float64 about them."},
    {"state", (PyCFunction)Machine_state, METH_NOARGS,
     "The state that was answered last, and joints it follows from; empty where there is none."},
    {"inputs", (PyCFunction)Machine_inputs, METH_NOARGS,
     "Number of the route that answered last, and (k, bytes) of its kernel's inputs; or None."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef machine_properties[] = {
    {"api", (getter)Machine_api, NULL, "For other extension modules: see machine.h.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject MachineType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros.control.native.Machine",
    .tp_doc = "The stream: messages and times in, messages and rejections out.",
    .tp_basicsize = sizeof(Machine),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)Machine_init,
    .tp_dealloc = (destructor)Machine_dealloc,
    .tp_methods = machine_methods,
    .tp_getset = machine_properties,
};

static bool has_size(const Py_buffer *view, size_t count)
{
  if ((size_t)view->len == sizeof(double) * count) return true;
  PyErr_SetString(PyExc_ValueError, "give one float64 for each name");
  return false;
}

static PyObject *numbers_of(numbers_t numbers)
{
  PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(sizeof(double) * numbers.count));
  for (size_t k = 0; bytes != NULL && k < numbers.count; k++) {
    const double value = number_at(numbers, k);
    memcpy(PyBytes_AS_STRING(bytes) + sizeof value * k, &value, sizeof value);
  }
  return bytes;
}

static PyObject *read_message(PyObject *Py_UNUSED(module), PyObject *args)
{
  Py_buffer data;
  joint_state_t state;
  if (!PyArg_ParseTuple(args, "y*", &data)) return NULL;
  PyObject *result = NULL;
  if (!read_joint_state(data.buf, (size_t)data.len, 0, &state)) {
    PyErr_SetString(PyExc_ValueError, "the bytes are no JointState in plain CDR");
  } else {
    PyObject *names = PyList_New(0);
    cdr_reader_t reader = begin_names(data.buf, &state);
    for (uint32_t k = 0; names != NULL && k < state.name_count; k++) {
      const text_t text = cdr_text(&reader);
      PyObject *name = PyUnicode_DecodeUTF8(text.at, (Py_ssize_t)text.size, "replace");
      if (name == NULL || PyList_Append(names, name) < 0) Py_CLEAR(names);
      Py_XDECREF(name);
    }
    if (names != NULL)
      result = Py_BuildValue("NLNNN", names, (long long)state.stamp, numbers_of(state.position),
                             numbers_of(state.velocity), numbers_of(state.effort));
  }
  PyBuffer_Release(&data);
  return result;
}

static PyObject *write_message(PyObject *Py_UNUSED(module), PyObject *args)
{
  PyObject *given;
  long long stamp;
  Py_buffer fields[3] = {{0}};
  if (!PyArg_ParseTuple(args, "OLy*y*y*", &given, &stamp, &fields[0], &fields[1], &fields[2]))
    return NULL;
  PyObject *result = NULL, *list = PySequence_Fast(given, "names are a sequence");
  const size_t count = list == NULL ? 0 : (size_t)PySequence_Fast_GET_SIZE(list);
  const char **names = calloc(count + 1, sizeof *names);
  bool good = list != NULL && names != NULL;
  int present = 0;
  for (size_t k = 0; good && k < count; k++)
    good = (names[k] = PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(list, (Py_ssize_t)k))) != NULL;
  for (int f = 0; good && f < 3; f++)
    if (fields[f].len > 0) {
      present |= 1 << f;
      good = has_size(&fields[f], count);
    }
  template_t message = {0};
  if (good && make_joint_state(&message, names, count, present)) {
    for (int f = 0; f < 3; f++)
      if (message.fields[f] != 0)
        memcpy(message.data + message.fields[f], fields[f].buf, (size_t)fields[f].len);
    put_stamp(&message, stamp);
    result = bytes_of(message.data, message.size);
  } else if (!PyErr_Occurred()) {
    PyErr_NoMemory();
  }
  free_template(&message);
  free(names);
  Py_XDECREF(list);
  for (int f = 0; f < 3; f++) PyBuffer_Release(&fields[f]);
  return result;
}

PyObject *set_slice(PyObject *module, PyObject *args); /* time_slice.c */

static PyMethodDef functions[] = {
    {"set_slice", set_slice, METH_VARARGS, "How long a thread (by its number) runs on, in ns."},
    {"read_joint_state", read_message, METH_VARARGS,
     "Names, stamp [ns], and positions, velocities and efforts as float64 bytes, of a serialized\n"
     "JointState; ValueError where it is none."},
    {"write_joint_state", write_message, METH_VARARGS,
     "write_joint_state(names, stamp, position, velocity, effort): serialized; fields are float64\n"
     "bytes, one number for each name or none."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "native",     .m_doc = "The stream's state machine.",
    .m_size = -1,          .m_methods = functions,
};

PyMODINIT_FUNC PyInit_native(void)
{
  if (PyType_Ready(&MachineType) < 0) return NULL;
  PyObject *result = PyModule_Create(&module);
  if (result != NULL
      && (PyModule_AddObjectRef(result, "Machine", (PyObject *)&MachineType) < 0
          || !add_lists(result)))
    Py_CLEAR(result);
  return result;
}
