/* Kernels one after the other, with their arguments checked: one public method. */
#ifndef RBDA_ROS_CHECKED_CALL_H
#define RBDA_ROS_CHECKED_CALL_H

#include "spare.h"

enum { MOST_STEPS = 4, MOST_RESULTS = 3 };

typedef struct {
  npy_intp size;
  double *fixed; /* in the call's memory */
  int constant;  /* nobody writes it: given, or zero */
} Slot;

typedef struct {
  Kernel *kernel; /* or NULL: then the third slot becomes the first and `sign` times the second */
  double sign;
  int slots[MOST_PORTS];
} Step;

typedef struct {
  int slot, dimensions;
  npy_intp shape[2];
  Spare spare;
} Result;

/* Numbers live in slots. The first have the arguments, then come results, what passes between
   kernels, and zeros. */
typedef struct {
  PyObject_HEAD vectorcallfunc vectorcall;
  Reader *reader;
  char kinds[MOST_ARGUMENTS + 1]; /* q: position, the first; v: velocity; f: force on y, or on
                                       all joints; w: wrenches; x: other vectors; d: damping, a
                                       number that may be left out, the last */
  int arguments, slots, steps, results;
  int optional;            /* 1 where the last argument may be left out */
  int finite, missed;      /* slots that must be finite, and be small beside; or -1 */
  int mass_matrix;         /* slot of H, if results are to be solved with it; or -1 */
  double least;            /* not 0: H is the second result and damping, and the first
                                       its inverse, if its least eigenvalue has this share; else
                                       it is left out */
  Branches *branches;      /* of H */
  Kernel *forces;          /* q, forces on all joints -> those on y; or NULL */
  PyObject *make, *fields; /* class of the answer; NULL for a plain one */
  double *memory;
  Slot slot[MOST_SLOTS];
  Result result[MOST_RESULTS];
  Step step[MOST_STEPS];
} CheckedCall;

/* A step that adds so many numbers. */
static inline void add_slots(const Step *step, double *const *slots, npy_intp numbers)
{
  const double *a = slots[step->slots[0]], *b = slots[step->slots[1]];
  double *sum = slots[step->slots[2]];
  for (npy_intp i = 0; i < numbers; i++) sum[i] = a[i] + step->sign * b[i];
}

/* Whether forces, or accelerations, are numbers, and loops that are closed by forces closed. */
int is_sound(const CheckedCall *call, double *const *slots);
/* solving.c: -H^-1 times all results but the last, which becomes H^-1; or the first result as the inverse of
   the second and damping: whether H is regular. */
int solve_results(const CheckedCall *call, const Branches *branches, double *const *slots);
/* What a method returns, of its results and, where that is a field of it, the last argument; what
   is NULL is left out. */
PyObject *answer_of(const CheckedCall *call, PyObject *const *arrays, PyObject *last);

/* batch.c: the same at many states, where some arguments are (N, size); None for all else. */
PyObject *call_with_rows(CheckedCall *call, PyObject *const *given);

#endif
