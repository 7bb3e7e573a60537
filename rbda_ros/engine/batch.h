/* Many states: rows of arrays, a state each, validated and evaluated block by block, by several
   threads where that pays. What they share is only read. */
#ifndef RBDA_ROS_BATCH_H
#define RBDA_ROS_BATCH_H

#include "operation_call.h"

/* A kernel as it was when the batch began: it may be compiled, or withdrawn, meanwhile. */
typedef struct {
  Kernel *kernel;        /* NULL for none */
  Evaluate evaluate;     /* one row; NULL where CasADi does */
  const BatchCode *code; /* many rows; NULL where they are evaluated one by one */
} BatchKernel;

/* An argument: rows of numbers, or one vector for all of them. */
typedef struct {
  const double *numbers;
  npy_intp size;       /* of a row */
  int single, checked; /* one vector; nothing to be checked any more */
  PyObject *keep;      /* has the numbers */
} BatchArgument;

/* Rows that are closed as a motion: some one after the other, those near them from there. */
typedef struct {
  BatchKernel closure;    /* without a kernel where nothing is to be closed */
  const Indices *entries; /* of q that are known */
  const double *rows;     /* as given: (count, size) */
  npy_intp size, count;   /* size: of what is known, or nq */
  const double *guess;    /* where to start; NULL for the first row itself, or home */
  npy_intp *anchor;       /* for each row, which of the anchors it is closed from; an
                             anchor is the first row that has it */
  double *q;              /* (anchors, nq): closed */
  npy_intp first;         /* anchors before this row are in `into` */
  double *into;           /* (count, nq) anchors that are found go here, and of one that is not
                             closed, where it was tried from; or NULL */
  unsigned char *missed;  /* for each row, whether it was not closed; NULL: that is a rejection */
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
  double *singles;             /* arguments that are one vector, where they were changed */
  double *port[MAX_PORTS];     /* rows of a kernel that is evaluated alone */
  double *result[MAX_RESULTS]; /* rows of results; without a call those of q and yd, or NULL */
  npy_intp code_memory;        /* numbers that machine code works in */
  double instructions;         /* of one row */
} Batch;

/* A range of rows, and the memory of the thread that works on it. */
typedef struct {
  const Batch *batch;
  npy_intp first, count;
  double *memory; /* of machine code; then come the others */
  double *slot[MAX_SLOTS], *known, *start, *phi, *conditioning;
  double *holding, *work;
  npy_intp started;       /* the anchor that all of `start` has; -1 where they differ */
  double residual, worst; /* of its loops */
  npy_intp row;           /* the first that is rejected */
  double value;           /* by which it is */
} BatchWorker;

/* Evaluate so many rows; 0 with an exception. */
int run_rows(const BatchKernel *kernel, double *const *ports, double *memory, npy_intp count);

/* batch_closure.c: the anchors closed; `*row` is one that is not. */
Status close_anchors(const StateValidator *validator, BatchClosure *closing, npy_intp *row);
/* Some of its rows, closed from their anchors. */
Status close_rows(const StateValidator *validator, const BatchClosure *closing, BatchWorker *worker,
                  npy_intp first, npy_intp count, double *q);
void free_batch_closure(BatchClosure *closing);

/* batch_worker.c: work on all rows, in several threads where that pays. */
typedef struct {
  Status status;
  npy_intp row; /* the first that is rejected */
  double value; /* by which it is */
  double residual, worst;
} BatchOutcome;
typedef Status (*BlockWork)(BatchWorker *worker, npy_intp first, npy_intp count);
BatchOutcome run_batch(Batch *batch, BlockWork work);

/* batch_evaluation.c: all arguments of some rows; they are in `slots` then, or these point at them. */
Status check_arguments(BatchWorker *worker, npy_intp first, npy_intp count, double **slots);
/* Unit quaternions of so many positions; -1, or the first that is far from it. */
npy_intp normalize_rows(const StateValidator *validator, double *q, npy_intp count);

/* Results of some rows, their positions and velocities as they were validated,
   or their positions closed. */
Status evaluate_block(BatchWorker *worker, npy_intp first, npy_intp count);
Status check_block(BatchWorker *worker, npy_intp first, npy_intp count);
Status close_block(BatchWorker *worker, npy_intp first, npy_intp count);

/* Rows in somebody's memory: inputs, then outputs, each (count, size). */
typedef struct {
  npy_intp count;
  int inputs, ports;
  double *port[MAX_PORTS];
  npy_intp size[MAX_PORTS];
} Rows;

/* batch.c: Kernel.batch. */
PyObject *kernel_batch(PyObject *self, PyObject *const *given, Py_ssize_t count);
/* A Kernel or an OperationCall at such rows: whether it was evaluated, and what came of it may be
   used. If not, Python is to read the arguments, or to explain; no exception is left. */
int evaluate_rows(PyObject *callable, const Rows *rows);
/* A position and a velocity (or None) of many states: what StateValidator.check returns. */
PyObject *check_rows(StateValidator *validator, PyObject *position, PyObject *velocity);
/* What ClosureCall does for many: (N, nq), or a Rejection. */
PyObject *close_batch(StateValidator *validator, Kernel *closure, const Indices *entries,
                      PyObject *given, const double *guess);
/* The same into q (N, nq) from an anchor on: None, or a Rejection of an anchor; all other rows that
   are not closed are flagged. */
PyObject *close_batch_from(StateValidator *validator, Kernel *closure, const Indices *entries,
                           PyObject *given, const double *guess, PyObject *q, npy_intp first,
                           PyObject *missed);

#endif
