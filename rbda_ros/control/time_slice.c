/* Time slices of threads, for `thread_priority.py`. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>

/* As <linux/sched/types.h> has it from the beginning; the C library has no name for it. */
typedef struct {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period; /* [ns] */
} attributes_t;

/* Policy and niceness stay. */
static bool give_slice(pid_t thread, uint64_t nanoseconds)
{
  attributes_t attributes = {0};
  if (syscall(SYS_sched_getattr, thread, &attributes, sizeof attributes, 0) != 0) return false;
  attributes.size = sizeof attributes;
  attributes.runtime = nanoseconds;
  return syscall(SYS_sched_setattr, thread, &attributes, 0) == 0;
}
#endif

/* (thread, nanoseconds): how long a thread of an ordinary policy runs on before the scheduler of Linux
 * looks for another. One that asks for less than the thread that runs takes its place when it wakes
 * up, from Linux 6.12 on; older ones take no notice. */
PyObject *set_slice(PyObject *Py_UNUSED(module), PyObject *args)
{
  int thread;
  unsigned long long nanoseconds;
  if (!PyArg_ParseTuple(args, "iK", &thread, &nanoseconds)) return NULL;
#ifdef __linux__
  if (!give_slice(thread, nanoseconds)) return PyErr_SetFromErrno(PyExc_OSError);
#endif
  Py_RETURN_NONE;
}
