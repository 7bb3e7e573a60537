#include "stream_call.h"

#include <math.h>
#include <string.h>

bool read_call(held_t *held, PyObject *given, call_t *call)
{
  PyObject *arrays;
  unsigned long long kernel;
  int guess;
  if (!PyArg_ParseTuple(given, "KO!idddid", &kernel, &PyTuple_Type, &arrays, &guess, &call->precise,
                        &call->closed, &call->nearby, &call->repeats, &call->max_condition))
    return false;
  *(void **)&call->kernel = (void *)(uintptr_t)kernel;
  call->count = (int)PyTuple_GET_SIZE(arrays);
  if (!fits(kernel != 0 && call->count <= MOST_ARRAYS && guess >= 0 && guess < call->count - 2,
            "a kernel"))
    return false;
  for (int k = 0; k < call->count; k++) {
    if (!hold_vector(held, PyTuple_GET_ITEM(arrays, k), &call->arrays[k])) return false;
    call->ports[k] = call->arrays[k].at;
  }
  call->guess = call->arrays[guess];
  call->q = call->arrays[call->count - 2];
  call->health = call->arrays[call->count - 1];
  call->start.count = call->guess.count;
  call->start.at = PyMem_Calloc((size_t)call->start.count + 1, sizeof(double));
  if (call->start.at == NULL) {
    PyErr_NoMemory();
    return false;
  }
  return fits(call->health.count > EFFORTS_SQUARED && call->q.count == call->guess.count,
              "an array of a kernel");
}

void free_call(call_t *call)
{
  PyMem_Free(call->start.at);
  call->start.at = NULL;
}

static void copy(vector_t from, vector_t to)
{
  memcpy(to.at, from.at, sizeof(double) * (size_t)to.count);
}

void keep_guess(call_t *call)
{
  copy(call->q, call->guess);
}

void restore_guess(call_t *call)
{
  copy(call->start, call->guess);
}

/* Evaluate until Newton steps have closed the loops, while they lead nowhere far; as `ClosingCall`
 * does before it tries anything else. */
static bool close_loops(call_t *call)
{
  const double *health = call->health.at;
  double way = 0.0;
  call->kernel(call->ports);
  for (int k = 0; k < call->repeats; k++) {
    way += health[MOVED];
    if (!(way <= call->nearby && health[RESIDUAL] < INFINITY)) return false;
    if (health[RESIDUAL] <= call->precise) return true;
    copy(call->q, call->guess);
    call->kernel(call->ports);
  }
  return health[RESIDUAL] <= call->closed;
}

bool compute(call_t *call)
{
  const double *health = call->health.at;
  copy(call->guess, call->start);
  if (close_loops(call) && health[INPUTS] < INFINITY
      && health[CONDITIONING] * call->max_condition >= 1.0 && health[EFFORTS_SQUARED] < INFINITY)
    return true;
  restore_guess(call);
  return false;
}
