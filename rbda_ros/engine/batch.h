/* Many states: rows of arrays, one state each, validated and evaluated block by block, by several
   threads where that pays. Threads only read what they share. */
#ifndef RBDA_ROS_BATCH_H
#define RBDA_ROS_BATCH_H

#include "operation_call.h"

/* A kernel as it was when the batch began; it may be compiled or withdrawn meanwhile. */
typedef struct {
  Kernel *kernel;        /* NULL for none */
  Evaluate evaluate;     /* one row; NULL where CasADi does */
  const BatchCode *code; /* many rows; NULL where they are evaluated one by one */
} BatchKernel;

/* An argument: rows of numbers, or one vector for all of them. */
typedef struct {
  const double *numbers;
  npy_intp size;       /* of a row */
  int single, checked; /* one vector for all rows; checked before */
  PyObject *keep;      /* keeps the numbers alive */
} BatchArgument;

/* Rows that are closed as a motion. Some rows, the anchors, are closed one after the other; rows near
   an anchor are closed from it. */
typedef struct {
  BatchKernel closure;    /* without a kernel where nothing is to be closed */
  const Indices *entries; /* of q that are known */
  const double *rows;     /* as given: (count, size) */
  npy_intp size, count;   /* size: number of entries, or nq */
  const double *guess;    /* where to start; NULL: from the first row if it has nq, or home */
  npy_intp *anchor;       /* for each row, the index of its anchor, which is the first row with
                             this index */
  double *q;              /* (anchors, nq): closed */
  npy_intp first;         /* anchors before this row are in `into` already */
  double *into;           /* (count, nq) closed anchors are stored here, and for an anchor that is
                             not closed, where Newton steps began; or NULL */
  unsigned char *missed;  /* for each row, whether it was not closed; NULL: reject such rows */
} BatchClosure;

typedef struct {
  StateValidator *validator; /* NULL where a kernel is evaluated alone */
  const OperationCall *call; /* NULL where rows are only validated or closed */
  const char *kinds;         /* of the arguments, as in OperationCall */
  int arguments;
  npy_intp count, block; /* rows, -1 while that is not known; and rows at a time */
  BatchArgument given[MAX_ARGUMENTS];
  BatchClosure closing;
  BatchKernel loop_state, forces, step[MAX_STEPS];
  int turns_forces;            /* forces on all joints go through `forces` */
  int checks_later;            /* loops are checked by the first step's kernel, on its way */
  int interpreted;             /* CasADi evaluates something: the interpreter lock is kept */
  double *singles;             /* memory for loops, then for arguments that are one vector */
  double *port[MAX_PORTS];     /* rows of a kernel that is evaluated alone */
  double *result[MAX_RESULTS]; /* rows of results; without a call those of q and yd, or NULL */
  npy_intp code_memory;        /* numbers that machine code works in */
  double instructions;         /* of one row */
} Batch;

/* A range of rows, and the memory of the thread that works on it. */
typedef struct {
  const Batch *batch;
  npy_intp first, count;
  double *memory; /* of machine code */
  double *slot[MAX_SLOTS], *known, *start, *phi, *conditioning;
  double *holding, *work;
  npy_intp started;       /* the anchor in all rows of `start`; -1 if they differ */
  double residual, worst; /* of the loops of its rows */
  npy_intp row;           /* the first rejected row */
  double value;           /* of its Rejection */
} BatchWorker;

/* Evaluate `count` rows; 0 with an exception. */
int run_rows(const BatchKernel *kernel, double *const *ports, double *memory, npy_intp count);

/* batch_closure.c: close the anchors; `*row` is the last one that was tried. */
Status close_anchors(const StateValidator *validator, BatchClosure *closing, npy_intp *row);
/* Close some rows from their anchors. */
Status close_rows(const StateValidator *validator, const BatchClosure *closing, BatchWorker *worker,
                  npy_intp first, npy_intp count, double *q);
void free_batch_closure(BatchClosure *closing);

/* batch_worker.c: work on all rows, in several threads where that pays. */
typedef struct {
  Status status;
  npy_intp row; /* the first rejected row */
  double value; /* of its Rejection */
  double residual, worst;
} BatchOutcome;
typedef Status (*BlockWork)(BatchWorker *worker, npy_intp first, npy_intp count);
BatchOutcome run_batch(Batch *batch, BlockWork work);

/* batch_evaluation.c: check all arguments of some rows. `slots` then point at them. */
Status check_arguments(BatchWorker *worker, npy_intp first, npy_intp count, double **slots);
/* Normalize the quaternions of `count` positions; -1, or the first that is far from unit length. */
npy_intp normalize_rows(const StateValidator *validator, double *q, npy_intp count);

/* Write the results of some rows; their checked positions and velocities; their closed positions. */
Status evaluate_block(BatchWorker *worker, npy_intp first, npy_intp count);
Status check_block(BatchWorker *worker, npy_intp first, npy_intp count);
Status close_block(BatchWorker *worker, npy_intp first, npy_intp count);

/* Rows in the caller's memory: inputs, then outputs, each (count, size). */
typedef struct {
  npy_intp count;
  int inputs, ports;
  double *port[MAX_PORTS];
  npy_intp size[MAX_PORTS];
} Rows;

/* batch.c: Kernel.batch. */
PyObject *kernel_batch(PyObject *self, PyObject *const *given, Py_ssize_t count);
/* Evaluate a Kernel or an OperationCall at such rows: whether the results may be used. If not, Python
   reads the arguments, or explains; no exception is set. */
int evaluate_rows(PyObject *callable, const Rows *rows);
/* StateValidator.check for a position and a velocity (or None) of many states. */
PyObject *check_rows(StateValidator *validator, PyObject *position, PyObject *velocity);
/* ClosureCall for many positions: (N, nq), or a Rejection. */
PyObject *close_batch(StateValidator *validator, Kernel *closure, const Indices *entries,
                      PyObject *given, const double *guess);
/* The same into q (N, nq), anchors from row `first` on: None, or a Rejection of an anchor. All other
   rows that are not closed are flagged in `missed`. */
PyObject *close_batch_from(StateValidator *validator, Kernel *closure, const Indices *entries,
                           PyObject *given, const double *guess, PyObject *q, npy_intp first,
                           PyObject *missed);

#endif
