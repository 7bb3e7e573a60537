/* joint_states to ~/feedforward, or ~/joint_commands to ~/motor_commands, in a thread of its own,
 * without the interpreter.
 *
 * The thread has a subscription of its own on the node of rclpy. While it is armed with a plan it
 * answers what the plan knows. Everything else it hands over: it wakes the executor, and rests
 * until Python has taken and answered all that came, and arms it again. Python may arm it with
 * another plan between two messages. What the thread writes too, Python seizes the plan to change:
 * then messages wait, until it arms the thread. So one of the two decides at any time, and messages
 * are answered in the order they come in. The lock is held while one message is answered, and never
 * while waiting for the interpreter. */
#include "plan.h"
#include "slice.h"
#include "subscription.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>

#include "rcl/error_handling.h"

enum { MOST_RECORDS = 8192 }; /* answers whose times are remembered until they are read */

typedef struct {
  PyObject_HEAD rcl_node_t *node;
  rcl_clock_t *clock;
  PyObject *wake; /* has the executor take messages */
  rcl_subscription_t subscription;
  rcl_serialized_message_t message; /* the one that was taken last */
  bool ready;                       /* lock, semaphore and condition are there */
  bool open;                        /* subscription and thread are there */
  pthread_t thread;
  sem_t news;           /* something may have come */
  pthread_mutex_t lock; /* of all that follows */
  pthread_cond_t resumed;
  const kind_t *kind; /* of the messages */
  void *plan;         /* NULL, or what it goes by while it is armed */
  bool armed, stopping;
  bool seized;  /* Python changes the plan; messages wait */
  bool handed;  /* Python's turn; the thread rests */
  bool pending; /* `message` waits for Python */
  record_t *records;
  size_t answers;     /* since they were read; more than there are records, perhaps */
  last_state_t state; /* that it answered last, while it has a plan */
} Stream;

/* In the thread. */

static void on_news(const void *stream, size_t count)
{
  (void)count;
  sem_post(&((Stream *)stream)->news);
}

static bool take(Stream *self)
{
  return take_from(&self->subscription, &self->message);
}

static bool answer(Stream *self)
{
  record_t spare;
  record_t *record = self->answers < MOST_RECORDS ? &self->records[self->answers] : &spare;
  const outcome_t outcome = self->kind->answer(self->plan, self->clock, self->message.buffer,
                                               (Py_ssize_t)self->message.buffer_length, record);
  if (outcome == ANSWERED) self->answers++;
  return outcome != FOR_PYTHON;
}

static void call_wake(Stream *self)
{
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject *result = PyObject_CallNoArgs(self->wake);
  if (result == NULL) PyErr_WriteUnraisable(self->wake);
  Py_XDECREF(result);
  PyGILState_Release(state);
}

static void *run(void *argument)
{
  Stream *self = argument;
  pthread_mutex_lock(&self->lock);
  while (!self->stopping) {
    if (self->seized) {
      pthread_cond_wait(&self->resumed, &self->lock);
      continue;
    }
    const bool taken = take(self);
    if (taken && !(self->armed && answer(self))) {
      self->armed = false;
      self->pending = self->handed = true;
      pthread_mutex_unlock(&self->lock);
      call_wake(self);
      pthread_mutex_lock(&self->lock);
      while (self->handed && !self->stopping) pthread_cond_wait(&self->resumed, &self->lock);
    }
    pthread_mutex_unlock(&self->lock); /* for whoever waits, between two messages */
    while (!taken && sem_wait(&self->news) != 0 && errno == EINTR) {}
    pthread_mutex_lock(&self->lock);
  }
  pthread_mutex_unlock(&self->lock);
  return NULL;
}

/* In Python. The interpreter stays held while waiting for the lock: the thread never waits for it
 * with the lock, and whoever gave it up here might hold the lock until it gets it back. */

static int start_thread(Stream *self)
{
  /* Signals are for Python's main thread. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(&self->thread, NULL, run, self);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
#ifdef __linux__
  if (!failed) pthread_setname_np(self->thread, self->kind->name);
#endif
  return failed;
}

static bool open_subscription(Stream *self, const rosidl_message_type_support_t *type,
                              const char *topic, size_t depth)
{
  if (listen_to(self->node, type, topic, depth, on_news, self, &self->subscription)) {
    if (start_thread(self) == 0) return true;
    stop_listening(self->node, &self->subscription);
  }
  PyErr_Format(PyExc_RuntimeError, "cannot listen to %s: %s", topic, rcl_get_error_string().str);
  rcl_reset_error();
  return false;
}

static int Stream_init(Stream *self, PyObject *args, PyObject *kwargs)
{
  static char *names[] = {"kind", "node", "clock", "type_support", "topic", "depth", "wake", NULL};
  unsigned long long node, clock;
  PyObject *capsule, *wake;
  const char *kind, *topic;
  Py_ssize_t depth;
  if (self->ready) {
    PyErr_SetString(PyExc_RuntimeError, "it is open already");
    return -1;
  }
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sKKOsnO", names, &kind, &node, &clock, &capsule,
                                   &topic, &depth, &wake))
    return -1;
  if ((self->kind = find_kind(kind)) == NULL) return -1;
  const rosidl_message_type_support_t *type =
      PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
  if (type == NULL) return -1;
  self->node = (rcl_node_t *)(uintptr_t)node;
  self->clock = (rcl_clock_t *)(uintptr_t)clock;
  self->wake = Py_NewRef(wake);
  self->message = rmw_get_zero_initialized_serialized_message();
  const rcutils_allocator_t allocator = rcutils_get_default_allocator();
  self->records = PyMem_Malloc(MOST_RECORDS * sizeof(record_t));
  if (self->records == NULL
      || rmw_serialized_message_init(&self->message, 4096, &allocator) != RMW_RET_OK) {
    PyErr_NoMemory();
    return -1;
  }
  sem_init(&self->news, 0, 0);
  init_lock(&self->lock);
  pthread_cond_init(&self->resumed, NULL);
  last_state_init(&self->state);
  self->ready = true;
  self->open = open_subscription(self, type, topic, (size_t)depth);
  return self->open ? 0 : -1;
}

static PyObject *Stream_close(Stream *self, PyObject *Py_UNUSED(none))
{
  if (self->open) {
    self->open = false;
    pthread_mutex_lock(&self->lock);
    self->stopping = true;
    self->armed = false;
    pthread_cond_signal(&self->resumed);
    pthread_mutex_unlock(&self->lock);
    sem_post(&self->news);
    Py_BEGIN_ALLOW_THREADS /* which the thread may be waiting for */
        pthread_join(self->thread, NULL);
    stop_listening(self->node, &self->subscription);
    Py_END_ALLOW_THREADS
  }
  if (self->plan != NULL) self->kind->free(self->plan);
  self->plan = NULL;
  Py_RETURN_NONE;
}

static void Stream_dealloc(Stream *self)
{
  Py_XDECREF(Stream_close(self, NULL));
  if (self->ready) {
    sem_destroy(&self->news);
    pthread_mutex_destroy(&self->lock);
    pthread_cond_destroy(&self->resumed);
    last_state_destroy(&self->state);
  }
  if (self->message.buffer != NULL) (void)!rmw_serialized_message_fini(&self->message);
  PyMem_Free(self->records);
  Py_XDECREF(self->wake);
  Py_TYPE(self)->tp_free(self);
}

static PyObject *Stream_take(Stream *self, PyObject *Py_UNUSED(none))
{
  bool taken = false;
  if (self->open) {
    pthread_mutex_lock(&self->lock);
    if (self->handed) taken = self->pending || take(self);
    self->pending = false;
    pthread_mutex_unlock(&self->lock);
  }
  if (!taken) Py_RETURN_NONE; /* the thread rests until it is armed: the message stays */
  return PyBytes_FromStringAndSize((const char *)self->message.buffer,
                                   (Py_ssize_t)self->message.buffer_length);
}

static PyObject *Stream_arm(Stream *self, PyObject *args)
{
  PyObject *description, *now;
  if (!PyArg_ParseTuple(args, "OO", &description, &now)) return NULL;
  void *plan = NULL;
  if (description != Py_None) plan = self->kind->make(description, now, &self->state);
  const bool failed = PyErr_Occurred() != NULL;
  pthread_mutex_lock(&self->lock);
  void *before = self->plan;
  PyObject *heard = failed ? NULL : self->kind->heard(before);
  if (plan != NULL)
    self->kind->begin(plan, before);
  else
    last_state_forget(&self->state);
  self->plan = plan;
  self->seized = false;
  self->armed = plan != NULL && !self->pending; /* which Python answers first, and arms it then */
  self->handed = self->pending;
  pthread_cond_signal(&self->resumed);
  pthread_mutex_unlock(&self->lock);
  self->kind->free(before);
  return heard; /* if it failed, there is no plan, but the thread goes on */
}

static PyObject *Stream_seize(Stream *self, PyObject *Py_UNUSED(none))
{
  pthread_mutex_lock(&self->lock);
  void *plan = self->plan;
  self->plan = NULL;
  self->armed = false;
  self->seized = true;
  pthread_mutex_unlock(&self->lock);
  PyObject *result = self->kind->heard(plan);
  last_state_forget(&self->state); /* Python knows it now, and what comes after */
  self->kind->free(plan);
  return result;
}

static PyObject *Stream_look(Stream *self, PyObject *Py_UNUSED(none))
{
  pthread_mutex_lock(&self->lock);
  PyObject *result = self->kind->heard(self->plan);
  pthread_mutex_unlock(&self->lock);
  return result;
}

static PyObject *Stream_put(Stream *self, PyObject *args)
{
  Py_buffer given[MOST_INPUTS];
  long long earliest, newest;
  if (!PyArg_ParseTuple(args, "y*y*y*y*LL", &given[0], &given[1], &given[2], &given[3], &earliest,
                        &newest))
    return NULL;
  pthread_mutex_lock(&self->lock);
  const bool armed = self->armed && self->kind == &joint_states;
  const bool fit = !armed || plan_put(self->plan, given, earliest, newest);
  pthread_mutex_unlock(&self->lock);
  for (int k = 0; k < MOST_INPUTS; k++) PyBuffer_Release(&given[k]);
  if (!fit) return PyErr_Format(PyExc_ValueError, "an input is longer than the kernel's");
  return PyBool_FromLong(armed);
}

static PyObject *Stream_read(Stream *self, PyObject *Py_UNUSED(none))
{
  pthread_mutex_lock(&self->lock);
  const size_t answers = self->answers, kept = answers < MOST_RECORDS ? answers : MOST_RECORDS;
  PyObject *bytes =
      PyBytes_FromStringAndSize((const char *)self->records, (Py_ssize_t)(kept * sizeof(record_t)));
  if (bytes != NULL) self->answers = 0;
  pthread_mutex_unlock(&self->lock);
  return bytes == NULL ? NULL : Py_BuildValue("nN", (Py_ssize_t)answers, bytes);
}

static PyMethodDef methods[] = {
    {"take", (PyCFunction)Stream_take, METH_NOARGS,
     "The next message for Python, once woken; None if there is no more, then `arm`."},
    {"arm", (PyCFunction)Stream_arm, METH_VARARGS,
     "Let the thread go on: with a plan, or None to be woken for each message. What was heard by\n"
     "the plan that it had until now, or None."},
    {"seize", (PyCFunction)Stream_seize, METH_NOARGS,
     "Take the plan back; what was heard by it, or None. Messages wait from now on, until `arm`."},
    {"look", (PyCFunction)Stream_look, METH_NOARGS, "What was heard, without taking it back."},
    {"put", (PyCFunction)Stream_put, METH_VARARGS,
     "Give the plan other inputs, between two messages; whether there is a plan."},
    {"read", (PyCFunction)Stream_read, METH_NOARGS,
     "How many messages were answered since the last time, and how, as rows of float64."},
    {"close", (PyCFunction)Stream_close, METH_NOARGS, "End the thread, and stop listening."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject StreamType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros._native.stream.Stream",
    .tp_doc = "Answers messages of a kind in a thread of its own. Close it before its node goes.",
    .tp_basicsize = sizeof(Stream),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)Stream_init,
    .tp_dealloc = (destructor)Stream_dealloc,
    .tp_methods = methods,
};

last_state_t *state_of(PyObject *stream)
{
  if (Py_TYPE(stream) == &StreamType && ((Stream *)stream)->ready)
    return &((Stream *)stream)->state;
  PyErr_SetString(PyExc_TypeError, "no thread of joint states");
  return NULL;
}

static PyMethodDef functions[] = {
    {"set_slice", set_slice, METH_VARARGS, "How long a thread (by its number) runs on, in ns."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "stream",
    .m_doc = "The stream's thread, over rcl. Import rclpy first, which loads it.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_stream(void)
{
  if (PyType_Ready(&StreamType) < 0) return NULL;
  PyObject *result = PyModule_Create(&module);
  if (result != NULL && PyModule_AddObjectRef(result, "Stream", (PyObject *)&StreamType) < 0)
    Py_CLEAR(result);
  return result;
}
