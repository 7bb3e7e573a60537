/* What the stream's thread goes by while it answers joint states without Python.
 *
 * Python makes a plan of what it has decided for the messages that came last, and takes it back
 * before it changes any of it. All numbers stand in Python's own arrays: a plan holds these, and
 * has none of its own. What a plan does not know, it leaves to Python. */
#ifndef RBDA_ROS_PLAN_H
#define RBDA_ROS_PLAN_H

#include "kind.h"
#include "message.h"
#include "stream_call.h"

enum { MOST_FORMS = 8, MOST_MESSAGES = 4 };

/* Joint states like one that Python has read. */
typedef struct {
  shape_t shape;
  Py_ssize_t position_at, velocity_at;
  order_t order;         /* places in the message of the joints to go by; or, if it has a */
  order_t target;        /* target, of those to be kept, and their places in the robot */
  Py_ssize_t effort_at;  /* 0 where it has no efforts, or nobody wants them */
  order_t effort_order;  /* their places in it, */
  order_t effort_target; /* and among those of all joints */
  bool partial;          /* the joints to go by follow from other messages too */
  bool refused;          /* it has no joint of the robot: count it, and no more */
  int64_t time;          /* stamp of the last one [ns] */
  long long refusals;    /* how many were refused since Python asked */
} form_t;

/* Differences over the stamps, filtered; see `FilteredRates`. */
typedef struct {
  vector_t rates, values;
  times_t times;
  double cutoff; /* [Hz] */
  bool wanted;
} rates_t;

/* The newest of every joint, where one message does not tell all; see `Measured`. */
typedef struct {
  vector_t position, velocity;
  times_t times;
  rates_t velocity_rates, acceleration_rates;
  double longest;       /* gap after which there is no rate [s] */
  order_t places;       /* of the joints to go by */
  const uint8_t *fresh; /* which joints these follow from, if messages are partial */
  vector_t offsets;     /* added to their positions; none where there are none */
} kept_t;

typedef struct {
  held_t held;
  form_t forms[MOST_FORMS];
  int form_count;
  call_t call;                 /* the feedforward: 5 or 6 inputs, 3 outputs */
  vector_t position, velocity; /* parts of its inputs: what is measured */
  vector_t acceleration;       /* of joints, where it comes from differences */
  kept_t kept;
  void (*completion)(double *const *ports); /* velocities of all joints; NULL if not wanted */
  vector_t completed;
  vector_t measured; /* efforts of all joints, as the message has them */
  message_t messages[MOST_MESSAGES];
  int message_count;
  long long timeout, jump;  /* [ns] */
  bool others;              /* whether it needs other topics than joint states */
  int64_t earliest, newest; /* times that those are from */
  int64_t latest;           /* time that was seen last */
  long long stale;          /* states too old, or too new, since Python asked */
  int64_t age;              /* of the last of these [ns] */
  unsigned long long of;    /* the call of Python that it is of */
  last_state_t *state;      /* velocity, spanning position and efforts of the last answer, */
  vector_t room;            /* for which there is room here until this plan begins */
} plan_t;

/* Give it other inputs (acceleration, wrenches, pose and twist of the base; empty to leave one as
 * it is), and the times that they are from; false where they do not fit. */
enum { MOST_INPUTS = 4 };
bool plan_put(void *plan, const Py_buffer *given, int64_t earliest, int64_t newest);

/* Answer one message, or leave everything as it was. Without the interpreter. */
outcome_t plan_answer(void *plan, rcl_clock_t *clock, const uint8_t *data, Py_ssize_t size,
                      record_t *record);

/* Inputs of the feedforward beside what is measured, in the order of `Robot.feedforward`. */
enum { POSITION, VELOCITY, ACCELERATION, GUESS, LIMIT, WRENCHES };
vector_t *plan_output(plan_t *plan, int output);
enum { EFFORTS, SPANNING_POSITION, HEALTH_NUMBERS };

#endif
