/* cones.c: impulses of contacts with friction, of limits and of dry friction. Memory is the
   caller's, and no Python object is touched: threads may solve side by side. */
#ifndef RBDA_ROS_CONES_H
#define RBDA_ROS_CONES_H

#include <stddef.h>

enum { MAX_CONE_ROWS = 768 };

typedef struct {
  int m, blocks, coulomb;
  const char *kind;    /* of each block: e, p, b or c; see cones.c */
  const int *first;    /* its first row, and m after the last block */
  double tolerance;    /* largest error of velocities */
  long most;           /* iterations */
  int rank;            /* n where A = J R J', else 0; for 2 n <= m this is faster */
  const double *J, *R; /* (m, n); (n, n) symmetric */
} ConeProblem;

/* The first row of each block, in `first` (blocks + 1), and their number of rows in all; -1 for an
   unknown kind or too many. */
int cone_rows(const char *kinds, ptrdiff_t blocks, int *first);

/* How many doubles of memory a problem of m rows takes. */
size_t cone_numbers(int m, int blocks);

/* Impulses x (m) with c = A x + g, A (m x m, NULL with J and R), that satisfy every block. x has the
   start before. Returns the largest error of a velocity, and counts iterations. */
double solve_cone_problem(const ConeProblem *problem, const double *A, const double *g,
                          const double *parameter, double *x, long *iterations, double *memory);

#endif
