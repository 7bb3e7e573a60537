/* The machine of `rbda_ros.control` on real topics: one thread takes messages of all subscriptions
 * in the order of their arrival, gives them to the machine, and publishes what comes out. It needs
 * the interpreter only to tell Python that the machine asks for something. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../control/machine.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rcl/error_handling.h"
#include "rcl/node.h"
#include "rcl/publisher.h"
#include "rcl/subscription.h"
#include "rcl/time.h"
#include "rosidl_runtime_c/message_type_support_struct.h"

enum { MAX_ARRIVALS = 4096 };
/* Simulated time comes as messages, too, in the order of arrival with all others: whoever publishes
 * a time and then a state means the state to be of that time. */
enum { CLOCK = INPUT_TOPICS, ALL_INPUTS };
enum { PERHAPS = ALL_INPUTS }; /* added to the topic of an arrival that was not announced */
/* How often inputs are looked after while time is simulated: it can stop and start again [ns]. */
static const int64_t SIMULATED_PERIOD = 10000000;

struct stream;

typedef struct {
  struct stream *stream;
  int topic;
  bool open;
  rcl_subscription_t subscription;
} input_t;

typedef struct stream {
  PyObject_HEAD rcl_node_t *node;
  rcl_clock_t *clock;
  PyObject *machine; /* whose memory this works on */
  const machine_api_t *api;
  PyObject *wake;
  input_t inputs[ALL_INPUTS];
  rcl_serialized_message_t message;
  size_t depth; /* messages that the middleware keeps for each input */
  bool ready, open;
  pthread_t thread;
  pthread_mutex_t arrivals_lock; /* of the next seven */
  pthread_cond_t arrived;
  uint8_t arrivals[MAX_ARRIVALS];
  size_t first, waiting;
  bool uncounted;         /* whether more came than `arrivals` has room for */
  uint64_t overtaken;     /* messages that newer ones had replaced before they were taken */
  bool stopping, renewed; /* `renewed`: what is due may be something else */
  pthread_mutex_t timing; /* of the next six */
  bool timed, was_simulated, knows_time;
  int64_t simulated_time; /* of the last message on the clock's topic, if there was one */
  int64_t steady, offset; /* the steady time given last; what is added to the clock it is from */
  pthread_mutex_t publishing; /* of the publishers */
  rcl_publisher_t *publishers[OUTPUT_TOPICS];
} Stream;

static void add_arrival(Stream *self, int topic)
{
  self->arrivals[(self->first + self->waiting++) % MAX_ARRIVALS] = (uint8_t)topic;
}

/* In threads of the middleware. */
static void on_arrival(const void *of, size_t count)
{
  const input_t *input = of;
  Stream *self = input->stream;
  pthread_mutex_lock(&self->arrivals_lock);
  for (size_t k = 0; k < count && self->waiting < MAX_ARRIVALS; k++)
    add_arrival(self, input->topic);
  self->uncounted |= self->waiting == MAX_ARRIVALS;
  pthread_cond_signal(&self->arrived);
  pthread_mutex_unlock(&self->arrivals_lock);
}

/* In the thread of the stream. */

static void emit(void *context, int topic, const uint8_t *data, size_t size)
{
  Stream *self = context;
  rcl_serialized_message_t bytes = rmw_get_zero_initialized_serialized_message();
  bytes.buffer = (uint8_t *)data;
  bytes.buffer_length = bytes.buffer_capacity = size;
  bytes.allocator = rcutils_get_default_allocator();
  pthread_mutex_lock(&self->publishing);
  rcl_publisher_t *publisher = self->publishers[topic];
  if (publisher != NULL && rcl_publish_serialized_message(publisher, &bytes, NULL) != RCL_RET_OK)
    rcl_reset_error(); /* ROS is being shut down */
  pthread_mutex_unlock(&self->publishing);
}

static bool is_listened(void *context, int topic)
{
  Stream *self = context;
  size_t count = 0;
  pthread_mutex_lock(&self->publishing);
  const rcl_publisher_t *publisher = self->publishers[topic];
  if (publisher != NULL && rcl_publisher_get_subscription_count(publisher, &count) != RCL_RET_OK)
    rcl_reset_error();
  pthread_mutex_unlock(&self->publishing);
  return count > 0;
}

static bool is_simulated(Stream *self)
{
  bool simulated = false;
  if (self->clock->type == RCL_ROS_TIME
      && rcl_is_enabled_ros_time_override(self->clock, &simulated) != RCL_RET_OK)
    rcl_reset_error();
  return simulated;
}

/* Limits and time-outs follow the steady clock, or simulated time from the first message about it on.
 * Where one takes the place of the other, steady time continues from where it was. */
static bool present(Stream *self, moment_t *moment)
{
  rcl_time_point_value_t now;
  if (rcl_clock_get_now(self->clock, &now) != RCL_RET_OK) {
    rcl_reset_error();
    return false;
  }
  bool simulated = is_simulated(self);
  pthread_mutex_lock(&self->timing);
  simulated = simulated && self->knows_time;
  if (simulated) now = self->simulated_time;
  const int64_t steady = simulated ? now : monotonic();
  if (self->timed && simulated != self->was_simulated) self->offset = self->steady - steady;
  self->timed = true;
  self->was_simulated = simulated;
  self->steady = steady + self->offset;
  moment->now = now;
  moment->steady = self->steady;
  pthread_mutex_unlock(&self->timing);
  return true;
}

/* A message on the clock's topic: its time, in seconds and nanoseconds. */
static void take_time(Stream *self)
{
  const uint8_t *data = self->message.buffer;
  if (self->message.buffer_length < 12) return;
  const bool little = data[1] & 1;
  uint32_t numbers[2] = {0, 0};
  for (int k = 0; k < 8; k++) {
    const int place = little ? k % 4 : 3 - k % 4;
    numbers[k / 4] |= (uint32_t)data[4 + k] << (8 * place);
  }
  pthread_mutex_lock(&self->timing);
  self->simulated_time = (int64_t)(int32_t)numbers[0] * INT64_C(1000000000) + numbers[1];
  self->knows_time = true;
  pthread_mutex_unlock(&self->timing);
}

/* Until when to wait, by the computer's clock, for what is due in the machine. */
static int64_t waiting_until(Stream *self, int64_t due)
{
  if (due == INT64_MAX) return due;
  pthread_mutex_lock(&self->timing);
  const bool simulated = self->was_simulated;
  const int64_t offset = self->offset;
  pthread_mutex_unlock(&self->timing);
  return simulated ? monotonic() + SIMULATED_PERIOD : due - offset;
}

/* Tell Python that the machine asks for something. */
static void call_wake(Stream *self)
{
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject *result = PyObject_CallNoArgs(self->wake);
  if (result == NULL) PyErr_WriteUnraisable(self->wake);
  Py_XDECREF(result);
  PyGILState_Release(state);
}

/* After arrivals that were not counted: look at all inputs for as many messages as may be there.
 * Those left over would make all that follow late. */
static void look_everywhere(Stream *self)
{
  self->uncounted = false;
  for (int topic = 0; topic < ALL_INPUTS; topic++)
    for (size_t k = 0; k < self->depth && self->waiting < MAX_ARRIVALS; k++)
      add_arrival(self, PERHAPS + topic);
}

/* The next arrival; NOWHERE where nothing came until a time of the steady clock. With the lock. */
static int next_arrival(Stream *self, int64_t due)
{
  if (self->waiting == 0 && self->uncounted) look_everywhere(self);
  while (self->waiting == 0 && !self->stopping && !self->renewed) {
    if (due == INT64_MAX) {
      pthread_cond_wait(&self->arrived, &self->arrivals_lock);
      continue;
    }
    const struct timespec until = {due / 1000000000, due % 1000000000};
    if (pthread_cond_timedwait(&self->arrived, &self->arrivals_lock, &until) == ETIMEDOUT) break;
  }
  self->renewed = false;
  if (self->waiting == 0 || self->stopping) return NOWHERE;
  const int arrival = self->arrivals[self->first];
  self->first = (self->first + 1) % MAX_ARRIVALS;
  self->waiting--;
  return arrival;
}

static bool take(Stream *self, int arrival)
{
  const int topic = arrival % ALL_INPUTS;
  if (rcl_take_serialized_message(&self->inputs[topic].subscription, &self->message, NULL, NULL)
      == RCL_RET_OK)
    return true;
  rcl_reset_error(); /* it was overtaken by newer ones, or ROS is being shut down */
  if (arrival < PERHAPS && topic != CLOCK) {
    pthread_mutex_lock(&self->arrivals_lock);
    self->overtaken++;
    pthread_mutex_unlock(&self->arrivals_lock);
  }
  return false;
}

static void *run(void *argument)
{
  Stream *self = argument;
  const sink_t sink = {self, emit, is_listened};
  int64_t due = INT64_MAX;
  pthread_mutex_lock(&self->arrivals_lock);
  while (!self->stopping) {
    const int arrival = next_arrival(self, due), topic = arrival % ALL_INPUTS;
    if (self->stopping) break;
    pthread_mutex_unlock(&self->arrivals_lock);
    moment_t moment;
    bool asks = false;
    const bool taken = arrival != NOWHERE && take(self, arrival);
    if (taken && topic == CLOCK) take_time(self);
    if (present(self, &moment)) {
      if (taken && topic != CLOCK)
        asks = self->api->feed(self->api->machine, &sink, topic, self->message.buffer,
                               self->message.buffer_length, moment);
      due = waiting_until(self, self->api->tick(self->api->machine, &sink, moment));
    }
    if (asks) call_wake(self);
    pthread_mutex_lock(&self->arrivals_lock);
  }
  pthread_mutex_unlock(&self->arrivals_lock);
  return NULL;
}

/* In Python. */

static bool open_input(Stream *self, input_t *input, const rosidl_message_type_support_t *type,
                       const char *topic, size_t depth, bool reliable)
{
  rcl_subscription_options_t options = rcl_subscription_get_default_options();
  options.qos.depth = depth;
  options.qos.reliability =
      reliable ? RMW_QOS_POLICY_RELIABILITY_RELIABLE : RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  input->subscription = rcl_get_zero_initialized_subscription();
  if (rcl_subscription_init(&input->subscription, self->node, type, topic, &options) != RCL_RET_OK)
    return false;
  input->open = true;
  return rcl_subscription_set_on_new_message_callback(&input->subscription, on_arrival, input)
         == RCL_RET_OK;
}

static void close_input(Stream *self, input_t *input)
{
  if (!input->open) return;
  input->open = false;
  (void)!rcl_subscription_set_on_new_message_callback(&input->subscription, NULL, NULL);
  if (rcl_subscription_fini(&input->subscription, self->node) != RCL_RET_OK) rcl_reset_error();
}

static void close_inputs(Stream *self)
{
  for (int k = 0; k < ALL_INPUTS; k++) close_input(self, &self->inputs[k]);
}

/* Open each (topic, type, reliable). */
static bool open_inputs(Stream *self, PyObject *inputs, size_t depth)
{
  for (int k = 0; k < ALL_INPUTS; k++) {
    const char *topic;
    PyObject *capsule;
    int reliable;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(inputs, k), "sOp", &topic, &capsule, &reliable))
      return false;
    const rosidl_message_type_support_t *type =
        PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
    if (type == NULL) return false;
    if (!open_input(self, &self->inputs[k], type, topic, depth, reliable)) {
      PyErr_Format(PyExc_RuntimeError, "cannot listen to %s: %s", topic,
                   rcl_get_error_string().str);
      rcl_reset_error();
      return false;
    }
  }
  return true;
}

static bool start_thread(Stream *self)
{
  sigset_t all, before; /* signals are for Python's main thread */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(&self->thread, NULL, run, self);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) {
    PyErr_Format(PyExc_RuntimeError, "cannot start the thread of the stream: %s", strerror(failed));
    return false;
  }
#ifdef __linux__
  pthread_setname_np(self->thread, "stream");
#endif
  return true;
}

static void init_locks(Stream *self)
{
  pthread_condattr_t steady;
  pthread_condattr_init(&steady);
  pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
  pthread_cond_init(&self->arrived, &steady);
  pthread_condattr_destroy(&steady);
  pthread_mutexattr_t inherit;
  pthread_mutexattr_init(&inherit);
  pthread_mutexattr_setprotocol(&inherit, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(&self->arrivals_lock, &inherit);
  pthread_mutex_init(&self->publishing, &inherit);
  pthread_mutex_init(&self->timing, &inherit);
  pthread_mutexattr_destroy(&inherit);
}

static int Stream_init(Stream *self, PyObject *args, PyObject *kwargs)
{
  static char *names[] = {"node", "clock", "machine", "inputs", "depth", "wake", NULL};
  unsigned long long node, clock;
  PyObject *machine, *inputs, *wake;
  Py_ssize_t depth;
  if (self->ready) {
    PyErr_SetString(PyExc_RuntimeError, "it is open already");
    return -1;
  }
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KKOO!nO", names, &node, &clock, &machine,
                                   &PyTuple_Type, &inputs, &depth, &wake))
    return -1;
  if (PyTuple_GET_SIZE(inputs) != ALL_INPUTS) {
    PyErr_SetString(PyExc_ValueError,
                    "give (topic, type, reliable) for each input, and for the clock");
    return -1;
  }
  PyObject *api = PyObject_GetAttrString(machine, "api");
  self->api = api == NULL ? NULL : PyCapsule_GetPointer(api, MACHINE_API);
  Py_XDECREF(api);
  if (self->api == NULL) return -1;
  self->node = (rcl_node_t *)(uintptr_t)node;
  self->clock = (rcl_clock_t *)(uintptr_t)clock;
  self->machine = Py_NewRef(machine);
  self->wake = Py_NewRef(wake);
  for (int k = 0; k < ALL_INPUTS; k++) {
    self->inputs[k].stream = self;
    self->inputs[k].topic = k;
  }
  self->message = rmw_get_zero_initialized_serialized_message();
  const rcutils_allocator_t allocator = rcutils_get_default_allocator();
  if (rmw_serialized_message_init(&self->message, 4096, &allocator) != RMW_RET_OK) {
    PyErr_NoMemory();
    return -1;
  }
  init_locks(self);
  self->depth = (size_t)depth;
  self->ready = true;
  self->open = open_inputs(self, inputs, (size_t)depth) && start_thread(self);
  if (!self->open) close_inputs(self);
  return self->open ? 0 : -1;
}

/* End the thread; then publish what ends the topics of motors, and stop listening. */
static PyObject *Stream_close(Stream *self, PyObject *Py_UNUSED(none))
{
  if (!self->open) Py_RETURN_NONE;
  self->open = false;
  Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&self->arrivals_lock);
  self->stopping = true;
  pthread_cond_signal(&self->arrived);
  pthread_mutex_unlock(&self->arrivals_lock);
  pthread_join(self->thread, NULL);
  const sink_t sink = {self, emit, is_listened};
  moment_t moment;
  if (present(self, &moment)) self->api->stop(self->api->machine, &sink, moment);
  close_inputs(self);
  pthread_mutex_lock(&self->publishing);
  memset(self->publishers, 0, sizeof self->publishers);
  pthread_mutex_unlock(&self->publishing);
  Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static void Stream_dealloc(Stream *self)
{
  Py_XDECREF(Stream_close(self, NULL));
  if (self->ready) {
    pthread_mutex_destroy(&self->arrivals_lock);
    pthread_mutex_destroy(&self->publishing);
    pthread_mutex_destroy(&self->timing);
    pthread_cond_destroy(&self->arrived);
  }
  if (self->message.buffer != NULL) (void)!rmw_serialized_message_fini(&self->message);
  Py_XDECREF(self->wake);
  Py_XDECREF(self->machine);
  Py_TYPE(self)->tp_free(self);
}

/* Publish what a new configuration makes due, and have the thread look when something else is. */
static PyObject *Stream_renew(Stream *self, PyObject *Py_UNUSED(none))
{
  Py_BEGIN_ALLOW_THREADS const sink_t sink = {self, emit, is_listened};
  moment_t moment;
  if (self->open && present(self, &moment)) {
    (void)self->api->tick(self->api->machine, &sink, moment);
    pthread_mutex_lock(&self->arrivals_lock);
    self->renewed = true;
    pthread_cond_signal(&self->arrived);
    pthread_mutex_unlock(&self->arrivals_lock);
  }
  Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *Stream_overtaken(Stream *self, PyObject *Py_UNUSED(none))
{
  pthread_mutex_lock(&self->arrivals_lock);
  const uint64_t overtaken = self->overtaken;
  pthread_mutex_unlock(&self->arrivals_lock);
  return PyLong_FromUnsignedLongLong(overtaken);
}

static PyObject *Stream_set_publishers(Stream *self, PyObject *addresses)
{
  rcl_publisher_t *publishers[OUTPUT_TOPICS];
  PyObject *list = PySequence_Fast(addresses, "addresses are a sequence");
  if (list == NULL) return NULL;
  if (PySequence_Fast_GET_SIZE(list) != OUTPUT_TOPICS) {
    Py_DECREF(list);
    return PyErr_Format(PyExc_ValueError, "give one address for each output, or 0");
  }
  for (int k = 0; k < OUTPUT_TOPICS; k++)
    publishers[k] = PyLong_AsVoidPtr(PySequence_Fast_GET_ITEM(list, k));
  Py_DECREF(list);
  if (PyErr_Occurred()) return NULL;
  Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&self->publishing);
  memcpy(self->publishers, publishers, sizeof publishers);
  pthread_mutex_unlock(&self->publishing);
  Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"set_publishers", (PyCFunction)Stream_set_publishers, METH_O,
     "Addresses of the rcl publishers of all outputs, 0 for none. Keep what they belong to."},
    {"renew", (PyCFunction)Stream_renew, METH_NOARGS,
     "Publish what a new configuration makes due; call it after each."},
    {"overtaken", (PyCFunction)Stream_overtaken, METH_NOARGS,
     "How many messages were replaced by newer ones before they were taken."},
    {"close", (PyCFunction)Stream_close, METH_NOARGS,
     "End the thread, publish what ends the topics of motors, and stop listening."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject StreamType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros.node.rcl_stream.RclStream",
    .tp_doc = "Gives messages of a node to a machine, in a thread. Close it before the node goes.",
    .tp_basicsize = sizeof(Stream),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)Stream_init,
    .tp_dealloc = (destructor)Stream_dealloc,
    .tp_methods = methods,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "rcl_stream",
    .m_doc = "The stream's thread, over rcl. Import rclpy first, which loads it.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit_rcl_stream(void)
{
  if (PyType_Ready(&StreamType) < 0) return NULL;
  PyObject *result = PyModule_Create(&module);
  if (result != NULL && PyModule_AddObjectRef(result, "RclStream", (PyObject *)&StreamType) < 0)
    Py_CLEAR(result);
  return result;
}
