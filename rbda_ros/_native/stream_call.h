/* A kernel that closes loops from where it ended the last time: `ClosingCall` without Python. */
#ifndef RBDA_ROS_STREAM_CALL_H
#define RBDA_ROS_STREAM_CALL_H

#include "held.h"

enum { MOST_ARRAYS = 12 };

/* What the health of every such kernel begins with; see closing_call.py. */
enum { INPUTS, MOVED, RESIDUAL, CONDITIONING, EFFORTS_SQUARED };

typedef struct {
  void (*kernel)(double *const *ports);
  double *ports[MOST_ARRAYS];
  vector_t arrays[MOST_ARRAYS]; /* inputs, then outputs */
  int count;
  vector_t guess, q, health; /* of these */
  vector_t start;            /* the guess before loops were closed; its own */
  double precise, closed, nearby, max_condition;
  int repeats; /* evaluations at most, to close the loops */
} call_t;

/* From a tuple of native_parts.py; false with an exception. */
bool read_call(held_t *held, PyObject *given, call_t *call);
void free_call(call_t *call);

/* Evaluate with the loops closed; whether the answer can be trusted. If not, Python finds all as it
 * was. Without the interpreter. */
bool compute(call_t *call);
/* Have the next one start where this ended, or where this did. */
void keep_guess(call_t *call);
void restore_guess(call_t *call);

#endif
