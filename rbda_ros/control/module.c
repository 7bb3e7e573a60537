/* `rbda_ros.control.native`: the machine and the reader of messages, for Python.
 *
 * The interpreter is released before the lock of the machine is taken, and taken back after it was
 * given up: the thread of the stream may wait for the interpreter while it has the lock. */
#include "machine.h"
#include "read_config.h"

#include <stdlib.h>
#include <string.h>

/* Messages that come out, until the interpreter takes them. */
typedef struct {
  int topic;
  size_t size;
  uint8_t *data;
} emitted_t;

typedef struct {
  emitted_t *items;
  size_t count, capacity;
  bool listened;
} collected_t;

static void collect(void *context, int topic, const uint8_t *data, size_t size)
{
  collected_t *collected = context;
  if (collected->count == collected->capacity) {
    const size_t capacity = 2 * collected->capacity + 4;
    emitted_t *items = realloc(collected->items, capacity * sizeof *items);
    if (items == NULL) return;
    collected->items = items;
    collected->capacity = capacity;
  }
  uint8_t *copied = malloc(size + 1);
  if (copied == NULL) return;
  memcpy(copied, data, size);
  collected->items[collected->count++] = (emitted_t){topic, size, copied};
}

static bool is_listened(void *context, int topic)
{
  (void)topic;
  return ((const collected_t *)context)->listened;
}

/* The list of (topic, bytes); what was collected is freed. */
static PyObject *list_of(collected_t *collected)
{
  PyObject *list = PyList_New(0);
  for (size_t k = 0; k < collected->count; k++) {
    const emitted_t *item = &collected->items[k];
    PyObject *pair = list == NULL ? NULL
                                  : Py_BuildValue("iy#", item->topic, (const char *)item->data,
                                                  (Py_ssize_t)item->size);
    if (pair == NULL || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
    free(item->data);
  }
  free(collected->items);
  return list;
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
  LOCKED(self)
  asks = machine_feed(&self->machine, &sink, topic, data.buf, (size_t)data.len,
                      (moment_t){now, steady});
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

static PyObject *bytes_of(const void *data, size_t size)
{
  return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
}

/* A copy of some memory of the machine, made while its lock is held. */
static void *copied(const void *data, size_t size)
{
  void *copy = malloc(size + 1);
  if (copy != NULL && size > 0) memcpy(copy, data, size);
  return copy;
}

static PyObject *Machine_counts(Machine *self, PyObject *Py_UNUSED(none))
{
  int64_t counts[CODES], limited;
  double contradiction;
  int contradicting;
  double external;
  machine_t *m = &self->machine;
  LOCKED(self)
  memcpy(counts, m->counts, sizeof counts);
  limited = m->limited;
  contradiction = m->contradiction;
  contradicting = m->contradicting;
  external = m->state == NULL ? Py_NAN : m->state->largest_external;
  m->contradiction = 0.0;
  m->contradicting = NOWHERE;
  UNLOCKED(self)
  PyObject *list = PyList_New(CODES);
  for (int k = 0; list != NULL && k < CODES; k++)
    PyList_SET_ITEM(list, k, PyLong_FromLongLong(counts[k]));
  return Py_BuildValue("{s:N,s:L,s:d,s:i,s:d}", "rejected", list, "limited", (long long)limited,
                       "contradiction", contradiction, "contradicting", contradicting, "external",
                       external);
}

static PyObject *Machine_rejection(Machine *self, PyObject *Py_UNUSED(none))
{
  machine_t *m = &self->machine;
  rejection_t last;
  size_t joints;
  LOCKED(self)
  last = m->rejection;
  joints = m->state == NULL ? 0 : (size_t)m->state->joints;
  last.data = copied(last.data, last.size);
  last.detail.mask = copied(last.detail.mask, joints);
  UNLOCKED(self)
  PyObject *result = NULL;
  if (last.data != NULL && last.detail.mask != NULL)
    result = Py_BuildValue("{s:i,s:i,s:i,s:d,s:d,s:N,s:N}", "code", (int)last.code, "topic",
                           last.topic, "joint", last.detail.joint, "value", last.detail.value,
                           "other", last.detail.other, "data", bytes_of(last.data, last.size),
                           "mask", bytes_of(last.detail.mask, joints));
  else
    PyErr_NoMemory();
  free(last.data);
  free(last.detail.mask);
  return result;
}

/* Take what Python should prepare; None for nothing. */
static PyObject *Machine_request(Machine *self, PyObject *Py_UNUSED(none))
{
  machine_t *m = &self->machine;
  request_t asked;
  size_t joints = 0, nq = 0;
  bool taken;
  LOCKED(self)
  asked = m->request;
  taken = m->state != NULL && (asked.route || asked.command || asked.search);
  if (taken) {
    joints = (size_t)m->state->joints;
    nq = (size_t)m->state->nq;
    asked.measured = copied(asked.measured, 5 * joints);
    asked.position = copied(asked.position, sizeof(double) * (joints + nq));
    m->request.route = m->request.command = m->request.search = false;
  }
  UNLOCKED(self)
  if (!taken) Py_RETURN_NONE;
  PyObject *result = NULL;
  const uint8_t *masks = asked.measured;
  if (masks != NULL && asked.position != NULL)
    result = Py_BuildValue(
        "{s:O,s:O,s:O,s:N,s:N,s:O,s:N,s:i,s:N,s:O,s:N,s:N,s:N}", "route",
        asked.route ? Py_True : Py_False, "command", asked.command ? Py_True : Py_False, "search",
        asked.search ? Py_True : Py_False, "measured", bytes_of(masks, joints), "wanted",
        bytes_of(masks + joints, joints), "has_wanted", asked.has_wanted ? Py_True : Py_False,
        "named", bytes_of(masks + 2 * joints, joints), "fields", asked.fields, "damped",
        bytes_of(masks + 3 * joints, joints), "has_damped", asked.has_damped ? Py_True : Py_False,
        "chosen", bytes_of(masks + 4 * joints, joints), "position",
        bytes_of(asked.position, sizeof(double) * joints), "guess",
        bytes_of(asked.position + joints, sizeof(double) * nq));
  else
    PyErr_NoMemory();
  free(asked.measured);
  free(asked.position);
  return result;
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
  size_t count, kept;
  record_t *rows;
  LOCKED(self)
  count = records->count;
  kept = count < MAX_RECORDS ? count : MAX_RECORDS;
  rows = copied(records->records, kept * sizeof *rows);
  records->count = 0;
  UNLOCKED(self)
  if (rows == NULL) return PyErr_NoMemory();
  PyObject *result = Py_BuildValue("nN", (Py_ssize_t)count, bytes_of(rows, kept * sizeof *rows));
  free(rows);
  return result;
}

/* The state that was answered last: its time, velocity, position and efforts, and the joints it went
 * by; None where there is none. */
static PyObject *Machine_state(Machine *self, PyObject *Py_UNUSED(none))
{
  int64_t time = 0;
  size_t ny = 0, nq = 0, actuated = 0, joints = 0;
  double *numbers = NULL;
  uint8_t *mask = NULL;
  LOCKED(self)
  const state_t *s = self->machine.state;
  if (s != NULL && s->answered) {
    ny = (size_t)s->ny;
    nq = (size_t)s->nq;
    actuated = (size_t)s->actuated;
    joints = (size_t)s->joints;
    time = s->state_time;
    numbers = copied(s->state, sizeof(double) * (ny + nq + actuated));
    mask = copied(s->state_joints, joints);
  }
  UNLOCKED(self)
  PyObject *result = NULL;
  if (numbers != NULL && mask != NULL)
    result = Py_BuildValue("{s:L,s:N,s:N,s:N,s:N}", "time", (long long)time, "velocity",
                           bytes_of(numbers, sizeof(double) * ny), "q",
                           bytes_of(numbers + ny, sizeof(double) * nq), "efforts",
                           bytes_of(numbers + ny + nq, sizeof(double) * actuated), "joints",
                           bytes_of(mask, joints));
  else
    result = Py_NewRef(Py_None);
  free(numbers);
  free(mask);
  return result;
}

/* Which route answered last, and what its kernel was given; None where none did. */
static PyObject *Machine_inputs(Machine *self, PyObject *Py_UNUSED(none))
{
  double *inputs[MAX_PORTS];
  size_t sizes[MAX_PORTS];
  int count = 0, index = NOWHERE;
  LOCKED(self)
  const machine_t *m = &self->machine;
  if (m->route != NULL && m->config != NULL) {
    index = (int)(m->route - m->config->routes);
    const kernel_t *kernel = &m->route->kernel;
    count = kernel->count - 3;
    for (int k = 0; k < count; k++) {
      sizes[k] = kernel->sizes[k];
      inputs[k] = copied(kernel->ports[k], sizeof(double) * sizes[k]);
    }
  }
  UNLOCKED(self)
  if (index == NOWHERE) Py_RETURN_NONE;
  PyObject *list = PyList_New(count);
  for (int k = 0; k < count; k++) {
    PyObject *bytes = inputs[k] == NULL ? NULL : bytes_of(inputs[k], sizeof(double) * sizes[k]);
    if (list != NULL && bytes != NULL)
      PyList_SET_ITEM(list, k, bytes);
    else
      Py_XDECREF(bytes);
    free(inputs[k]);
  }
  return Py_BuildValue("iN", index, list);
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
     "Rejections by code, limited efforts, and the largest contradiction since the last call."},
    {"rejection", (PyCFunction)Machine_rejection, METH_NOARGS, "The last rejection."},
    {"request", (PyCFunction)Machine_request, METH_NOARGS,
     "Take what should be prepared, or None."},
    {"start_from", (PyCFunction)Machine_start_from, METH_VARARGS,
     "start_from(q): close the loops from here the next time; whether it fits the model."},
    {"records", (PyCFunction)Machine_records, METH_VARARGS,
     "records(of_commands): how many answers there were, and rows of float64 about them."},
    {"state", (PyCFunction)Machine_state, METH_NOARGS,
     "The state that was answered last, or None."},
    {"inputs", (PyCFunction)Machine_inputs, METH_NOARGS,
     "Number of the route that answered last, and copies of its kernel's inputs; or None."},
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
    cdr_reader_t reader = cdr_begin(data.buf, state.names_end);
    reader.at = state.names_at + sizeof(uint32_t);
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
      if (message.fields[f] != NULL)
        memcpy(message.fields[f], fields[f].buf, (size_t)fields[f].len);
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
  if (result != NULL && PyModule_AddObjectRef(result, "Machine", (PyObject *)&MachineType) < 0)
    Py_CLEAR(result);
  return result;
}
