/* The state that was answered last, for whoever else goes by it: commands act where the robot is. */
#ifndef RBDA_ROS_LAST_STATE_H
#define RBDA_ROS_LAST_STATE_H

#include "held.h"

#include <pthread.h>

typedef struct {
  pthread_mutex_t lock;          /* of the rest, held no longer than it takes to copy it */
  vector_t numbers;
  uint64_t of;                   /* which call it is of: what the numbers mean */
  int64_t time;                  /* that it was answered [ns] */
  bool known;
} last_state_t;

void last_state_init(last_state_t *state);
void last_state_destroy(last_state_t *state);

/* Expect states of a call, so many numbers, and forget the one before; false with an exception. */
bool last_state_expect(last_state_t *state, uint64_t of, Py_ssize_t count);
void last_state_forget(last_state_t *state);

/* Without the interpreter. `get` is false where there is none, or one of another call. */
void last_state_put(last_state_t *state, const vector_t *parts, int count, int64_t time);
bool last_state_get(last_state_t *state, uint64_t of, vector_t to, int64_t *time);

#endif
