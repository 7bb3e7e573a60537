#include "last_state.h"

#include <string.h>

void init_lock(pthread_mutex_t *lock)
{
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

void last_state_init(last_state_t *state)
{
  init_lock(&state->lock);
}

void last_state_destroy(last_state_t *state)
{
  pthread_mutex_destroy(&state->lock);
  PyMem_Free(state->numbers.at);
}

void last_state_expect(last_state_t *state, uint64_t of, vector_t *room)
{
  pthread_mutex_lock(&state->lock);
  const vector_t before = state->numbers;
  state->numbers = *room;
  state->of = of;
  state->known = false;
  pthread_mutex_unlock(&state->lock);
  *room = before;
}

void last_state_forget(last_state_t *state)
{
  pthread_mutex_lock(&state->lock);
  state->known = false;
  pthread_mutex_unlock(&state->lock);
}

void last_state_put(last_state_t *state, const vector_t *parts, int count, int64_t time)
{
  Py_ssize_t total = 0;
  for (int k = 0; k < count; k++) total += parts[k].count;
  pthread_mutex_lock(&state->lock);
  state->known = total == state->numbers.count;
  state->time = time;
  double *to = state->numbers.at;
  for (int k = 0; state->known && k < count; to += parts[k++].count)
    memcpy(to, parts[k].at, sizeof(double) * (size_t)parts[k].count);
  pthread_mutex_unlock(&state->lock);
}

bool last_state_get(last_state_t *state, uint64_t of, vector_t to, int64_t *time)
{
  pthread_mutex_lock(&state->lock);
  const bool good = state->known && state->of == of && state->numbers.count == to.count;
  if (good) {
    memcpy(to.at, state->numbers.at, sizeof(double) * (size_t)to.count);
    *time = state->time;
  }
  pthread_mutex_unlock(&state->lock);
  return good;
}
