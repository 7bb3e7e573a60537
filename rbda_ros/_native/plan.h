/* What the stream's thread goes by while it answers joint states without Python.
 *
 * Python makes a plan of what it has decided for the messages that came last, and takes it back
 * before it changes any of it. All numbers stand in Python's own arrays: a plan holds these, and
 * has none of its own. What a plan does not know, it leaves to Python. */
#ifndef RBDA_ROS_PLAN_H
#define RBDA_ROS_PLAN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "rcl/publisher.h"
#include "rcl/time.h"

/* Where the stamp is: after four bytes that say how the rest is encoded. */
enum { STAMP_AT = 4, STAMP_SIZE = 8 };
enum { HEALTH = 6, MOST_FORMS = 8, MOST_MESSAGES = 4, MOST_PARTS = 3, MOST_VIEWS = 64 };

/* Numbers of a message, or of the robot. */
typedef struct { double *at; Py_ssize_t count; } vector_t;
/* Places to take numbers from. */
typedef struct { const int64_t *at; Py_ssize_t count; } order_t;

/* [ns] */
typedef struct { int64_t *at; Py_ssize_t count; } times_t;

/* Joint states that differ only in their numbers from one that Python has read. */
typedef struct {
  const uint8_t *pattern, *mask; /* bytes that are the same, where the mask is not zero */
  Py_ssize_t compared;           /* bytes of these */
  Py_ssize_t size;               /* of the message */
  Py_ssize_t position_at, velocity_at;
  order_t order;                 /* places in the message of the joints to go by; or, if it has a */
  order_t target;                /* target, of those to be kept, and their places in the robot */
  Py_ssize_t effort_at;          /* 0 where it has no efforts, or nobody wants them */
  order_t effort_order;          /* their places in it, */
  order_t effort_target;         /* and among those of all joints */
  bool partial;                  /* the joints to go by follow from other messages too */
  bool refused;                  /* it has no joint of the robot: count it, and no more */
  int64_t time;                  /* stamp of the last one [ns] */
  long long refusals;            /* how many were refused since Python asked */
} form_t;

/* Differences over the stamps, filtered; see `FilteredRates`. */
typedef struct {
  vector_t rates, values;
  times_t times;
  double cutoff;                 /* [Hz] */
  bool wanted;
} rates_t;

/* The newest of every joint, where one message does not tell all; see `Measured`. */
typedef struct {
  vector_t position, velocity;
  times_t times;
  rates_t velocity_rates, acceleration_rates;
  double longest;                /* gap after which there is no rate [s] */
  order_t places;                /* of the joints to go by */
  const uint8_t *fresh;          /* which joints these follow from, if messages are partial */
  vector_t offsets;              /* added to their positions; none where there are none */
} kept_t;

/* Numbers that go into a message. */
typedef struct { vector_t values; order_t order; Py_ssize_t at; } part_t;

enum { ALWAYS, WITHOUT_EFFORTS, WITH_EFFORTS };

/* A message that is sent for every state that is answered. */
typedef struct {
  rcl_publisher_t *publisher;
  uint8_t *data;                 /* NULL where Python must make it */
  Py_ssize_t size;
  bool stamped;                  /* with the stamp of the state */
  bool optional;                 /* not sent unless somebody listens */
  int when;                      /* sent ALWAYS, or for states without efforts, or with them */
  part_t parts[MOST_PARTS];
  int count;
} message_t;

typedef struct {
  Py_buffer views[MOST_VIEWS];   /* what it holds */
  int held;
  form_t forms[MOST_FORMS];
  int form_count;
  void *kernel;                  /* the feedforward: 5 or 6 inputs, 3 outputs */
  vector_t arrays[9];
  int array_count;
  vector_t position, velocity;   /* parts of its inputs: what is measured */
  vector_t acceleration;         /* of joints, where it comes from differences */
  kept_t kept;
  void *completion;              /* velocities of all joints; NULL where nobody wants them */
  vector_t completed;
  vector_t measured;             /* efforts of all joints, as the message has them */
  message_t messages[MOST_MESSAGES];
  int message_count;
  double precise, closed, nearby, max_condition;
  int repeats;                   /* evaluations at most, to close the loops */
  vector_t start;                /* where these began */
  int64_t timeout, jump;         /* [ns] */
  bool others;                   /* whether it needs other topics than joint states */
  int64_t earliest, newest;      /* times that those are from */
  int64_t latest;                /* time that was seen last */
  long long stale;               /* states too old, or too new, since Python asked */
  int64_t age;                   /* of the last of these [ns] */
  vector_t state;                /* velocity, spanning position and efforts of the last answer */
  bool answered;                 /* whether there is one */
} plan_t;

/* How one message was answered. */
typedef struct { double duration, age, health[HEALTH]; } record_t;

typedef enum { FOR_PYTHON, COUNTED, ANSWERED } outcome_t;

/* A plan from a tuple of arrays and numbers; see `native_plan.py`. NULL with an exception. */
plan_t *plan_new(PyObject *description);
void plan_free(plan_t *plan);

/* What was heard by it, as `hear` of native_thread.py takes it; None without a plan. */
PyObject *plan_heard(plan_t *plan);

/* Give it other inputs (acceleration, wrenches, pose and twist of the base; empty to leave one as
 * it is), and the times that they are from; false where they do not fit. */
enum { MOST_INPUTS = 4 };
bool plan_put(plan_t *plan, const Py_buffer *given, int64_t earliest, int64_t newest);

/* Answer one message, or leave everything as it was. Without the interpreter. */
outcome_t plan_answer(plan_t *plan, rcl_clock_t *clock, const uint8_t *data, Py_ssize_t size,
                      record_t *record);

/* Inputs of the feedforward beside what is measured, in the order of `Robot.feedforward`. */
enum { POSITION, VELOCITY, ACCELERATION, GUESS, LIMIT, WRENCHES };
vector_t *plan_output(plan_t *plan, int output);
enum { EFFORTS, SPANNING_POSITION, HEALTH_NUMBERS };

#endif
