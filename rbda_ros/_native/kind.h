/* What a thread answers: joint states (plan.c) or joint commands (command.c). */
#ifndef RBDA_ROS_KIND_H
#define RBDA_ROS_KIND_H

#include "last_state.h"

#include "rcl/time.h"

enum { HEALTH = 6 };

/* How one message was answered. */
typedef struct {
  double duration, age, health[HEALTH];
} record_t;

typedef enum { FOR_PYTHON, COUNTED, ANSWERED } outcome_t;

/* Python makes a plan of what it has decided for the messages that came last, and takes it back
 * before it changes any of it. What a plan does not know, it leaves to Python. */
typedef struct {
  const char *name; /* of the thread too */
  /* A plan from tuples of arrays and numbers, of which `now` are those that change; what it
   * answers goes into `state`, if it is states. NULL with an exception. */
  void *(*make)(PyObject *description, PyObject *now, last_state_t *state);
  void (*free)(void *plan); /* or NULL */
  /* Begin, between two messages, where another plan ends, or NULL. Without the interpreter. */
  void (*begin)(void *plan, const void *before);
  PyObject *(*heard)(void *plan); /* None without a plan */
  /* Answer one message, or leave everything as it was. Without the interpreter. */
  outcome_t (*answer)(void *plan, rcl_clock_t *clock, const uint8_t *data, Py_ssize_t size,
                      record_t *record);
} kind_t;

extern const kind_t joint_states, joint_commands;
/* By its name; NULL with an exception. */
const kind_t *find_kind(const char *name);

/* The time [ns]; false where there is none. */
bool time_now(rcl_clock_t *clock, int64_t *now);
int64_t monotonic(void);

/* What a thread of joint states answered last; NULL with an exception if it is none. */
last_state_t *state_of(PyObject *stream);

#endif
