/* The state that was answered last, for whoever else goes by it: commands act where the robot is. */
#ifndef RBDA_ROS_LAST_STATE_H
#define RBDA_ROS_LAST_STATE_H

#include "held.h"

#include <pthread.h>

typedef struct {
  pthread_mutex_t lock; /* of the rest, held no longer than it takes to copy it */
  vector_t numbers;
  uint64_t of;  /* which call it is of: what the numbers mean */
  int64_t time; /* that it was answered [ns] */
  bool known;
} last_state_t;

/* A lock whose owner is hurried on by whoever waits for it with a real-time priority. */
void init_lock(pthread_mutex_t *lock);

void last_state_init(last_state_t *state);
void last_state_destroy(last_state_t *state);

/* All without the interpreter. Expect states of a call, as many numbers as there is room for, and
 * forget the one before, whose room is given back. `get` is false where there is none, or one of
 * another call. */
void last_state_expect(last_state_t *state, uint64_t of, vector_t *room);
void last_state_forget(last_state_t *state);
void last_state_put(last_state_t *state, const vector_t *parts, int count, int64_t time);
bool last_state_get(last_state_t *state, uint64_t of, vector_t to, int64_t *time);

#endif
