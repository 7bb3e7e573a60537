/* What the engine decides about positions and results, as plain C without Python.
 *
 * The engine includes it, and `rbda_ros export-c` copies it into the code that it writes: so it
 * compiles as C99 and as C++, allocates nothing, and warns of nothing with -Wconversion. */
#ifndef RBDA_ROS_LOOP_RULES_H
#define RBDA_ROS_LOOP_RULES_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "continuation.h"
#include "geometry.h"

/* Why an operation has no result; core.c gives Python these codes, which robot/robot.py explains. */
typedef enum {
  GOOD = 0,
  UNREAD,       /* an argument is not a float64 array of the right size with finite numbers */
  NOT_CLOSED,   /* Newton steps do not close the loops from y */
  OFF_LOOPS,    /* a spanning position does not satisfy the loops */
  DEAD_POINT,   /* the independent joints hardly determine the others */
  NOT_FINITE,   /* a result is infinite or not a number: the mass matrix is singular */
  LOOPS_MISSED, /* loops that are closed by their forces stay open */
  SINGULAR,     /* a matrix to be solved with is singular */
  FAILED        /* a Python exception is set */
} Status;

/* Without the calls that fmax and fmin are where NaN matters. */
static inline double larger(double a, double b)
{
  return a > b ? a : b;
}

static inline double smaller(double a, double b)
{
  return a < b ? a : b;
}

/* The first of some numbers that is larger than allowed, or none (NaN); -1 where all are good. */
static inline ptrdiff_t first_beyond(const double *numbers, ptrdiff_t count, double largest)
{
  for (ptrdiff_t i = 0; i < count; i++)
    if (!(fabs(numbers[i]) <= largest)) return i;
  return -1;
}

/* Whether a position is on its loops and away from dead points; the largest residual and the worst
   conditioning. */
static inline Status judge_loops(const double *phi, ptrdiff_t rows, const double *conditioning,
                                 ptrdiff_t loops, double on_loops, double singular,
                                 double *residual, double *worst)
{
  int closed = 1, regular = 1;
  *residual = 0.0;
  *worst = 1.0;
  for (ptrdiff_t i = 0; i < rows; i++) {
    closed &= fabs(phi[i]) <= on_loops;
    *residual = larger(fabs(phi[i]), *residual);
  }
  for (ptrdiff_t i = 0; i < loops; i++) {
    regular &= conditioning[i] >= singular;
    *worst = smaller(conditioning[i], *worst);
  }
  return !closed ? OFF_LOOPS : !regular ? DEAD_POINT : GOOD;
}

/* A closure kernel with what its steps are judged by. */
typedef struct {
  int (*evaluate)(const void *kernel, double *const *ports); /* known, guess, q, phi; 0: failed */
  const void *kernel;
  const ptrdiff_t *entries, *curved, *parts;
  ptrdiff_t known, curves, tries; /* how many of these there are */
  ptrdiff_t nq, rows;
  double closed, nearby;
} ClosureRules;

/* One evaluation, from one position to the next: whether it arrived, and not far away. */
static inline Status close_once(const ClosureRules *rules, double *known, double *last, double *q,
                                double *phi)
{
  double *ports[4];
  ports[0] = known;
  ports[1] = last;
  ports[2] = q;
  ports[3] = phi;
  if (!rules->evaluate(rules->kernel, ports)) return FAILED;
  int good = 1;
  for (ptrdiff_t i = 0; i < rules->rows; i++) good &= fabs(phi[i]) <= rules->closed;
  for (ptrdiff_t i = 0; i < rules->curves; i++)
    good &= fabs(q[rules->curved[i]] - last[rules->curved[i]]) <= rules->nearby;
  return good ? GOOD : NOT_CLOSED;
}

typedef struct {
  const ClosureRules *rules;
  double *known, *next, *phi, *q;
} ClosureStep;

static inline int close_part(void *context)
{
  const ClosureStep *step = (const ClosureStep *)context;
  const Status status = close_once(step->rules, step->known, step->q, step->next, step->phi);
  memcpy(step->q, step->next, (size_t)step->rules->nq * sizeof *step->q);
  return status == GOOD ? 1 : status == NOT_CLOSED ? 0 : -1;
}

/* Evaluations from `start` to where entries of q are `values`, in more and more parts. `known`
   (known), `next` (nq) and `phi` (rows) are scratch. */
static inline Status close_in_parts(const ClosureRules *rules, const double *values,
                                    const double *start, double *known, double *next, double *phi,
                                    double *q)
{
  ClosureStep step;
  Continuation of;
  step.rules = rules;
  step.known = known;
  step.next = next;
  step.phi = phi;
  step.q = q;
  of.entries = rules->entries;
  of.parts = rules->parts;
  of.known = rules->known;
  of.tries = rules->tries;
  of.nq = rules->nq;
  of.close = close_part;
  of.context = &step;
  const int closed = continue_closing(&of, values, start, known, q);
  return closed == 1 ? GOOD : closed == 0 ? NOT_CLOSED : FAILED;
}

/* Whether results are finite; and what loops that are closed by forces miss, beside them. */
static inline Status judge_results(const double *values, ptrdiff_t count, const double *missed,
                                   ptrdiff_t missed_count, double on_loops)
{
  if (first_beyond(values, count, DBL_MAX) >= 0) return NOT_FINITE;
  if (missed_count == 0) return GOOD;
  double largest = 1.0;
  for (ptrdiff_t i = 0; i < count; i++) largest = larger(fabs(values[i]), largest);
  return first_beyond(missed, missed_count, on_loops * largest) < 0 ? GOOD : LOOPS_MISSED;
}

/* Add a wrench on a link, force then moment, to those on bodies, moment then force. `link` has its
   body (0: it does not move), and R by rows and p of its frame there. */
enum { LINK_BODY = 0, LINK_FRAME = 1, LINK_NUMBERS = 13 };

static inline void add_link_wrench(const double *link, const double *wrench, double *bodies)
{
  const ptrdiff_t body = (ptrdiff_t)link[LINK_BODY];
  if (body == 0) return;
  double own[6];
  wrench_on_body(link + LINK_FRAME, wrench, own);
  for (int i = 0; i < 6; i++) bodies[6 * (body - 1) + i] += own[i];
}

/* L with H = L' L, in the lower half of H (n x n). `start` (n + 1) and `above` have the coordinates
   that carry each coordinate, the nearest first. 0 where H is singular. */
static inline int factor_by_branches(const ptrdiff_t *start, const ptrdiff_t *above, ptrdiff_t n,
                                     double *H)
{
  for (ptrdiff_t k = n - 1; k >= 0; k--) {
    const ptrdiff_t *of_k = above + start[k];
    const ptrdiff_t count = start[k + 1] - start[k];
    double *row = H + k * n;
    if (!(row[k] > 0.0)) return 0;
    row[k] = sqrt(row[k]);
    for (ptrdiff_t a = 0; a < count; a++) row[of_k[a]] /= row[k];
    for (ptrdiff_t a = 0; a < count; a++) {
      double *other = H + of_k[a] * n, factor = row[of_k[a]];
      for (ptrdiff_t b = a; b < count; b++) other[of_k[b]] -= factor * row[of_k[b]];
    }
  }
  return 1;
}

#endif
