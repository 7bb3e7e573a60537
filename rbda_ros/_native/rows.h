/* Many states: rows of arrays, a state each, checked block by block and by several threads. What
   they share is only read; the interpreter lock may be released meanwhile. */
#ifndef RBDA_ROS_ROWS_H
#define RBDA_ROS_ROWS_H

#include "checked_call.h"

/* An argument: rows of numbers, or one vector for all of them. */
typedef struct {
  const double *numbers;
  npy_intp size;       /* of a row */
  int single, checked; /* one vector; nothing to be checked any more */
  PyObject *keep;      /* has the numbers */
} Given;

/* Rows that are closed as a motion: some one after the other, those near them from there. */
typedef struct {
  Kernel *closure;        /* NULL where nothing is to be closed */
  const Indices *entries; /* of q that are known */
  const double *rows;     /* as given: (count, size) */
  npy_intp size, count;   /* size: of what is known, or nq */
  const double *guess;    /* where to start; NULL for the first row itself, or home */
  npy_intp *anchor;       /* for each row, which of the anchors it is closed from; an
                                      anchor is the first row that has it */
  double *q;              /* (anchors, nq): closed */
} Motion;

typedef struct {
  Reader *reader;
  const CheckedCall *call; /* NULL where rows are only checked */
  const char *kinds;       /* of the arguments, as in CheckedCall */
  int arguments;
  npy_intp count, block; /* rows, and rows at a time */
  Given given[MOST_ARGUMENTS];
  Motion motion;
  const Kernel *forces;         /* that forces on all joints go through; or NULL */
  int checks_later;             /* loops are checked by the first step's kernel, on its way */
  double *singles;              /* arguments that are one vector, where they were changed */
  double *result[MOST_RESULTS]; /* rows of results; without a call those of q and yd, or NULL */
  npy_intp code_memory;         /* numbers that machine code works in */
  double instructions;          /* of one row */
} Batch;

/* A range of rows, and the memory of the thread that works on it. */
typedef struct {
  const Batch *batch;
  npy_intp first, count;
  double *memory; /* of machine code; then come the others */
  double *slot[MOST_SLOTS], *known, *start, *phi, *conditioning;
  double *holding, *work;
  npy_intp started;       /* the anchor that all of `start` has; -1 where they differ */
  double residual, worst; /* of its loops */
  int good;
} Share;

/* motion.c: the anchors of a motion, closed; 0 where Newton steps do not do it, or for want of
   memory. */
int close_anchors(const Reader *reader, Motion *motion);
/* Some of its rows, closed from their anchors. */
int close_rows(const Reader *reader, const Motion *motion, Share *share, npy_intp first,
               npy_intp count, double *q);
void free_motion(Motion *motion);

/* shares.c: work on all rows, in several threads where that pays; whether all went well. */
int run_batch(Batch *batch, int (*work)(Share *, npy_intp first, npy_intp count), double *residual,
              double *worst);

/* rows.c: whether all arguments of some rows are good; they are in `slots` then, or these point at them. */
int check_arguments(Share *share, npy_intp first, npy_intp count, double **slots);
/* Whether quaternions of so many positions are near unit length; then they have it. */
int normalize_rows(const Reader *reader, double *q, npy_intp count);

/* blocks.c: the answers for some rows, their positions and velocities as they were checked, or their
   positions closed: whether all is well. */
int evaluate_block(Share *share, npy_intp first, npy_intp count);
int check_block(Share *share, npy_intp first, npy_intp count);
int close_block(Share *share, npy_intp first, npy_intp count);

/* batch.c: a position and a velocity (or None) of many states: what Reader.check returns. */
PyObject *check_rows(Reader *reader, PyObject *position, PyObject *velocity);
/* What Closing does for many: (N, nq), or None. */
PyObject *close_motion(Reader *reader, Kernel *closure, const Indices *entries, PyObject *given,
                       const double *guess);

#endif
