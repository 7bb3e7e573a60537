/* One operation: its arguments validated, its kernels evaluated one after the other, its results
   checked. */
#ifndef RBDA_ROS_OPERATION_CALL_H
#define RBDA_ROS_OPERATION_CALL_H

#include "engine.h"

enum { MAX_STEPS = 6, MAX_RESULTS = 3 };

typedef struct {
  npy_intp size;
  npy_intp offset; /* in the call's memory */
  int constant;    /* neither argument, result nor output: a given constant, or zero */
} Slot;

typedef struct {
  Kernel *kernel; /* or NULL: the third slot becomes the first plus `sign` times the second */
  double sign;
  int slots[MAX_PORTS];
} Step;

typedef struct {
  int slot, dimensions;
  npy_intp shape[MAX_DIMENSIONS];
  ArrayPool pool;
} Result;

/* Numbers are in slots: first the arguments, then results, intermediate values, and zeros. */
typedef struct {
  PyObject_HEAD vectorcallfunc vectorcall;
  StateValidator *validator;
  char kinds[MAX_ARGUMENTS + 1]; /* q: position, the first; v: velocity; f: force on y, or on all
                                    joints; w: wrenches; x: other vectors; s: a number; d: damping,
                                    a number that may be left out, the last */
  int arguments, slots, steps, results;
  int plain;               /* 1 where the answer is the array of the only result */
  int optional;            /* 1 where the last argument may be left out */
  int finite, missed;      /* slots: must be finite; must be small relative to that one; or -1 */
  int mass_matrix;         /* slot of H, if results are to be solved with it; or -1 */
  double least;            /* not 0: the first result is the inverse of the second plus damping;
                              it is left out if the least eigenvalue may be below this share of
                              the largest */
  LtlFactorization *ltl;   /* of H */
  Kernel *forces;          /* q, forces on all joints -> those on y; or NULL */
  PyObject *make, *fields; /* class of the answer; NULL for a plain one */
  double *memory;          /* of all slots, then of loops */
  npy_intp numbers;        /* its size */
  npy_intp loops;          /* where the memory of loops begins */
  int busy;                /* in use by another thread (by CasADi): a call then takes a copy */
  Slot slot[MAX_SLOTS];
  Result result[MAX_RESULTS];
  Step step[MAX_STEPS];
} OperationCall;

/* A step that adds, over this many numbers. */
static inline void add_slots(const Step *step, double *const *slots, npy_intp numbers)
{
  const double *a = slots[step->slots[0]], *b = slots[step->slots[1]];
  double *sum = slots[step->slots[2]];
  for (npy_intp i = 0; i < numbers; i++) sum[i] = a[i] + step->sign * b[i];
}

/* Check one argument of one state: `*numbers` are the given ones, or `into`. Without the kernel
   `forces` (NULL), forces on all joints are not read. */
Status read_argument(const OperationCall *call, int i, LoopMemory *memory, const Kernel *forces,
                     PyObject *given, const double *q, double *into, const double **numbers);
/* Whether results are finite, and loops that are closed by forces are closed. */
Status check_results(const OperationCall *call, double *const *slots);
/* How much such loops miss. */
double loops_missed(const OperationCall *call, double *const *slots);
/* Replace all results but the last by -H^-1 times them, and the last by H^-1; or the first result by
   the inverse of the second plus damping. 0 if H is singular. */
int solve_results(const OperationCall *call, const LtlFactorization *ltl, double *const *slots);
/* The return value of a method, from its results and, if it has a field for it, the last argument.
   NULLs are left out. */
PyObject *answer_of(const OperationCall *call, PyObject *const *arrays, PyObject *last);

/* batch.c: the operation at many states, where some arguments are (N, size); or a Rejection. */
PyObject *call_with_rows(OperationCall *call, PyObject *const *given);

#endif
