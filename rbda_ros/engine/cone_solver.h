/* Impulses of contacts with friction, of limits and of dry friction: see cone_solver.c. No Python. */
#ifndef RBDA_ROS_CONE_SOLVER_H
#define RBDA_ROS_CONE_SOLVER_H

#include <stddef.h>

typedef struct {
  int m, blocks, coulomb;
  const char *kind; /* of each block */
  const int *first; /* its first row; (blocks + 1,) */
  double tolerance;
  long most; /* iterations */
} ConeProblem;

/* Doubles of memory that a problem of m rows takes. */
size_t cone_memory(int m, int blocks);

/* Find x (m,), from where it is, with A (m, m) and g (m,); parameters: coefficients of friction and
   bounds of each block. Returns what velocities miss. */
double cone_solve(const ConeProblem *problem, const double *A, const double *g,
                  const double *parameter, double *x, double *memory, long *iterations);

#endif
