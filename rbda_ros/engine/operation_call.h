/* One operation: its arguments validated, its kernels evaluated one after the other, its results
   checked. */
#ifndef RBDA_ROS_OPERATION_CALL_H
#define RBDA_ROS_OPERATION_CALL_H

#include "engine.h"

enum { MAX_STEPS = 6, MAX_RESULTS = 3 };

typedef struct {
  npy_intp size;
  npy_intp offset; /* in the call's memory */
  int constant;    /* nobody writes it: given, or zero */
} Slot;

typedef struct {
  Kernel *kernel; /* or NULL: then the third slot becomes the first and `sign` times the second */
  double sign;
  int slots[MAX_PORTS];
} Step;

typedef struct {
  int slot, dimensions;
  npy_intp shape[MAX_DIMENSIONS];
  ArrayPool pool;
} Result;

/* Numbers live in slots. The first have the arguments, then come results, what passes between
   kernels, and zeros. */
typedef struct {
  PyObject_HEAD vectorcallfunc vectorcall;
  StateValidator *validator;
  char kinds[MAX_ARGUMENTS + 1]; /* q: position, the first; v: velocity; f: force on y, or on
                                       all joints; w: wrenches; x: other vectors; s: a number; d: damping, a
                                       number that may be left out, the last */
  int arguments, slots, steps, results;
  int optional;            /* 1 where the last argument may be left out */
  int finite, missed;      /* slots that must be finite, and be small beside; or -1 */
  int mass_matrix;         /* slot of H, if results are to be solved with it; or -1 */
  double least;            /* not 0: H is the second result and damping, and the first
                                       its inverse, if its least eigenvalue has this worker; else
                                       it is left out */
  LtlFactorization *ltl;   /* of H */
  Kernel *forces;          /* q, forces on all joints -> those on y; or NULL */
  PyObject *make, *fields; /* class of the answer; NULL for a plain one */
  double *memory;          /* of all slots, and then of loops */
  npy_intp numbers;        /* that it has */
  npy_intp loops;          /* where those of loops begin */
  int busy;                /* another thread evaluates in it, by CasADi: a call then takes a copy */
  Slot slot[MAX_SLOTS];
  Result result[MAX_RESULTS];
  Step step[MAX_STEPS];
} OperationCall;

/* A step that adds so many numbers. */
static inline void add_slots(const Step *step, double *const *slots, npy_intp numbers)
{
  const double *a = slots[step->slots[0]], *b = slots[step->slots[1]];
  double *sum = slots[step->slots[2]];
  for (npy_intp i = 0; i < numbers; i++) sum[i] = a[i] + step->sign * b[i];
}

/* One argument of one state: `*numbers` are those given, or `into`. `forces` may be NULL: then
   forces on all joints are not taken. */
Status read_argument(const OperationCall *call, int i, LoopMemory *memory, const Kernel *forces,
                     PyObject *given, const double *q, double *into, const double **numbers);
/* Whether forces, or accelerations, are numbers, and loops that are closed by forces closed. */
Status check_results(const OperationCall *call, double *const *slots);
/* By how much such loops are open. */
double loops_missed(const OperationCall *call, double *const *slots);
/* -H^-1 times all results but the last, which becomes H^-1; or the first result as the inverse of
   the second and damping: whether H is regular. */
int solve_results(const OperationCall *call, const LtlFactorization *ltl, double *const *slots);
/* What a method returns, of its results and, where that is a field of it, the last argument; what
   is NULL is left out. */
PyObject *answer_of(const OperationCall *call, PyObject *const *arrays, PyObject *last);

/* batch.c: the same at many states, where some arguments are (N, size); or a Rejection. */
PyObject *call_with_rows(OperationCall *call, PyObject *const *given);

#endif
