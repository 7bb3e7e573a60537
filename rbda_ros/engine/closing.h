/* A kernel that closes loops by a few Newton steps from a guess, and what to do where these do not
 * arrive: more of them, and then the continuation of continuation.h. */
#ifndef RBDA_ROS_CLOSING_H
#define RBDA_ROS_CLOSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_PORTS = 12 };

/* A kernel bound to arrays: machine code, or something slower on the same arrays. */
typedef struct {
  void (*code)(double *const *ports);
  void (*evaluate)(void *memory);
  void *memory;
  double *ports[MAX_PORTS]; /* inputs, then outputs */
  size_t sizes[MAX_PORTS];
  int count;
} kernel_t;

void run_kernel(const kernel_t *kernel);

/* The numbers that the health of every such kernel begins with: `feedforward.Health`. That of a
 * command ends with the force on y that the motors miss, and the force that is commanded. */
enum { INPUTS, MOVED, RESIDUAL, CONDITIONING, EFFORTS_SQUARED, LIMITED, HEALTH };
enum { MISSED = HEALTH, FORCE, COMMAND_HEALTH };

/* Tolerances, from cluster_tree/closing/tolerances.py. */
typedef struct {
  double precise, closed, nearby;
  int repeats;
  const ptrdiff_t *parts; /* in how many parts known joints go from a guess to where they are */
  size_t part_count;
} closing_rules_t;

typedef struct {
  const kernel_t *kernel;
  double *position; /* (known) of the known joints */
  size_t known;
  const ptrdiff_t *entries; /* (known) their entries of q */
  double *guess, *q;        /* (nq) */
  size_t nq, base_nq;
  const double *health;
  double *scratch; /* (2 nq + 2 known) */
} closing_t;

typedef enum {
  CLOSED,
  INPUT_NOT_FINITE,
  TOO_FAR,
  AT_DEAD_POINT,
  EFFORT_NOT_FINITE,
  MOTORS_CANNOT
} closing_result_t;

/* Evaluate the kernel with the loops closed, from the guess, or else from another closed position
 * `home` (nq), unless it is NULL. Where that fails the guess is as it was. */
closing_result_t close_loops(const closing_t *of, const closing_rules_t *rules, const double *home);

/* Whether what was evaluated may be used: that of a state, whose loops are closed within `closed`; and
 * that of a command, of whose force motors may miss the share `cannot_give`. */
closing_result_t judge_health(const double *health, double closed, double max_condition);
closing_result_t judge_command(const double *health, double max_condition, double cannot_give);

#endif
