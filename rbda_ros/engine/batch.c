/* Methods at many states: rows of arrays, checked and evaluated block by block, so that the memory of
   a block stays in the cache. The checks are those of `state_validator.c`. As for one state, Python
   reads arguments that are not taken here. */
#include "batch.h"

#include <float.h>

enum { BLOCK = 64 }; /* rows at a time, or about so many: whole tiles of machine code */

/* The numbers of a contiguous float64 array (count, size); NULL for anything else. */
static const double *rows_of(PyObject *object, npy_intp *count, npy_intp *size)
{
  PyArrayObject *array = (PyArrayObject *)object;
  if (!PyArray_CheckExact(object) || PyArray_NDIM(array) != 2 || PyArray_TYPE(array) != NPY_DOUBLE
      || !PyArray_ISCARRAY_RO(array))
    return NULL;
  *count = PyArray_DIM(array, 0);
  *size = PyArray_DIM(array, 1);
  return PyArray_DATA(array);
}

/* Arguments. */

/* An argument that is one vector, checked now. Before the numbers of all such arguments there is
   memory for loops. Forces on all joints are none: positions may be many. */
static Status take_single(Batch *batch, int i, PyObject *object, double *into)
{
  BatchArgument *given = &batch->given[i];
  LoopMemory memory = loop_memory(batch->validator, batch->singles);
  given->single = given->checked = 1;
  given->size = batch->call->slot[i].size;
  return read_argument(batch->call, i, &memory, NULL, object, NULL, into, &given->numbers);
}

/* Whether rows may be an argument of its kind, from their size. Rows of y are to be closed. */
static Status fit_rows(Batch *batch, int i)
{
  StateValidator *validator = batch->validator;
  BatchArgument *given = &batch->given[i];
  npy_intp size = given->size;
  if (batch->kinds[i] == 'v') return size == validator->ny || size == validator->nv ? GOOD : UNREAD;
  if (batch->kinds[i] == 'f' && size != validator->ny) {
    batch->turns_forces = batch->call->forces != NULL;
    return size == validator->nv && batch->turns_forces ? GOOD : UNREAD;
  }
  if (batch->kinds[i] != 'q') return size == batch->call->slot[i].size ? GOOD : UNREAD;
  if (size == validator->nq) return GOOD;
  if (size != validator->known.count || validator->closure == NULL || given->checked) return UNREAD;
  batch->closing = (BatchClosure){
      .entries = &validator->known, .rows = given->numbers, .size = size, .count = batch->count};
  batch->closing.closure.kernel = (Kernel *)Py_NewRef((PyObject *)validator->closure);
  return GOOD;
}

/* The array of an argument, a new reference: the position of a checked state, the values of wrenches
   on bodies, or the object itself. */
static PyObject *numbers_of(Batch *batch, int i, PyObject *object)
{
  BatchArgument *given = &batch->given[i];
  PyObject *wrenches = batch->kinds[i] == 'w' ? body_wrenches(batch->validator, object) : NULL;
  if (wrenches != NULL) return wrenches;
  given->checked = batch->kinds[i] == 'q' && Py_TYPE(object) == batch->validator->state_type;
  return given->checked ? state_position(batch->validator, object) : Py_NewRef(object);
}

/* One argument: as many rows as the arguments before, or one vector. */
static Status take_argument(Batch *batch, int i, PyObject *object, double *single)
{
  BatchArgument *given = &batch->given[i];
  npy_intp count = 0;
  given->keep = numbers_of(batch, i, object);
  if (given->keep == NULL) return UNREAD;
  given->numbers = rows_of(given->keep, &count, &given->size);
  if (given->numbers == NULL)
    return batch->call == NULL ? UNREAD : take_single(batch, i, object, single);
  if (batch->count >= 0 && batch->count != count) return UNREAD;
  batch->count = count;
  return fit_rows(batch, i);
}

/* A kernel as it is now. Machine code for batches is requested if there is none. */
static int take_kernel(Batch *batch, BatchKernel *taken, Kernel *kernel)
{
  if (kernel->batch == NULL) {
    PyObject *nothing = PyObject_CallFunction(kernel->want_batch, "n", batch->count);
    if (nothing == NULL) return 0;
    Py_DECREF(nothing);
  }
  *taken = (BatchKernel){kernel, kernel->evaluate, kernel->batch};
  const BatchCode *code = taken->code;
  if (code == NULL) {
    batch->interpreted |= taken->evaluate == NULL;
    return 1;
  }
  batch->instructions += code->instructions;
  if (batch->code_memory < code->memory) batch->code_memory = code->memory;
  batch->block = code->together < BLOCK ? BLOCK / code->together * code->together : code->together;
  return 1;
}

/* Whether loops are not checked yet, and machine code of the first kernel checks them as well. */
static int may_check_later(const Batch *batch)
{
  const OperationCall *call = batch->call;
  if (call == NULL || !batch->validator->has_loops || *call->kinds != 'q'
      || batch->given[0].checked)
    return 0;
  const Step *step = &call->step[0];
  const BatchCode *code = batch->step[0].code;
  return step->kernel != NULL && step->slots[0] == 0 && code != NULL && code->checked != NULL
         && step->kernel->ports < MAX_PORTS;
}

/* A kernel alone. A residual other than zero means that an output is not finite. */
static Status kernel_block(BatchWorker *worker, npy_intp first, npy_intp count)
{
  const Batch *batch = worker->batch;
  const Kernel *kernel = batch->step[0].kernel;
  double *ports[MAX_PORTS];
  for (int i = 0; i < kernel->ports; i++) ports[i] = batch->port[i] + first * kernel->size[i];
  if (!run_rows(&batch->step[0], ports, worker->memory, count)) return FAILED;
  for (int i = kernel->inputs; i < kernel->ports; i++)
    if (!all_within(ports[i], count * kernel->size[i], DBL_MAX)) worker->residual = INFINITY;
  return GOOD;
}

/* 1 if all outputs are finite, 0 if not, -1 with an exception. */
static int kernel_rows(Kernel *kernel, const Rows *rows)
{
  Batch batch = {.count = rows->count, .block = BLOCK};
  int good = rows->inputs == kernel->inputs && rows->ports == kernel->ports && rows->count >= 0;
  for (int i = 0; good && i < kernel->ports; i++) {
    batch.port[i] = rows->port[i];
    good = rows->size[i] == kernel->size[i];
  }
  if (!good) {
    PyErr_SetString(PyExc_ValueError, "give as many contiguous float64 rows for each port");
    return -1;
  }
  if (!take_kernel(&batch, &batch.step[0], kernel)) return -1;
  if (batch.block > batch.count) batch.block = batch.count > 0 ? batch.count : 1;
  BatchOutcome outcome = run_batch(&batch, kernel_block);
  return outcome.status == GOOD ? outcome.residual == 0.0 : -1;
}

PyObject *kernel_batch(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
  Kernel *kernel = (Kernel *)self;
  Rows rows = {.count = -1, .inputs = kernel->inputs, .ports = (int)count};
  for (int i = 0; count == kernel->ports && i < kernel->ports; i++) {
    npy_intp those = -1;
    rows.port[i] = (double *)rows_of(given[i], &those, &rows.size[i]);
    if (rows.port[i] == NULL || (rows.count >= 0 && those != rows.count)
        || (i >= kernel->inputs && !PyArray_ISWRITEABLE((PyArrayObject *)given[i])))
      rows.ports = 0; /* no kernel has none, so `kernel_rows` rejects them */
    rows.count = those;
  }
  int finite = kernel_rows(kernel, &rows);
  return finite < 0 ? NULL : PyBool_FromLong(finite);
}

static int take_kernels(Batch *batch)
{
  const StateValidator *validator = batch->validator;
  const OperationCall *call = batch->call;
  batch->block = BLOCK;
  batch->instructions = (double)(validator->nq + validator->ny); /* to look at them */
  for (int k = 0; call != NULL && k < call->steps; k++)
    if (call->step[k].kernel && !take_kernel(batch, &batch->step[k], call->step[k].kernel))
      return 0;
  batch->checks_later = may_check_later(batch);
  if (validator->has_loops && !batch->checks_later
      && !take_kernel(batch, &batch->loop_state, validator->loop_state))
    return 0;
  Kernel *closure = batch->closing.closure.kernel;
  if (closure != NULL && !take_kernel(batch, &batch->closing.closure, closure)) return 0;
  if (batch->turns_forces && !take_kernel(batch, &batch->forces, call->forces)) return 0;
  if (batch->block > batch->count) batch->block = batch->count > 0 ? batch->count : 1;
  return 1;
}

static void free_batch(Batch *batch)
{
  for (int i = 0; i < batch->arguments; i++) Py_XDECREF(batch->given[i].keep);
  free_batch_closure(&batch->closing);
  PyMem_Free(batch->singles);
}

/* Arrays for the rows of some results, which the batch then writes. */
static Status take_results(Batch *batch, const Result *results, int count, PyObject **arrays)
{
  for (int i = 0; i < count; i++) {
    npy_intp shape[1 + MAX_DIMENSIONS] = {batch->count};
    memcpy(shape + 1, results[i].shape, sizeof results[i].shape);
    arrays[i] = take_large(&batch->validator->pool, 1 + results[i].dimensions, shape);
    if (arrays[i] == NULL) return FAILED;
    batch->result[i] = PyArray_DATA((PyArrayObject *)arrays[i]);
  }
  return GOOD;
}

static Status take_arguments(Batch *batch, PyObject *const *given, int *argument)
{
  const OperationCall *call = batch->call;
  npy_intp loops = loop_numbers(batch->validator), numbers = loops;
  for (int i = 0; i < call->arguments; i++) numbers += call->slot[i].size;
  batch->singles = PyMem_Malloc(numbers * sizeof *batch->singles);
  if (batch->singles == NULL) {
    PyErr_NoMemory();
    return FAILED;
  }
  double *single = batch->singles + loops;
  for (int i = 0; i < call->arguments; i++) {
    *argument = i;
    Status status = take_argument(batch, i, given[i], single);
    if (status != GOOD) return status;
    single += call->slot[i].size;
  }
  if (batch->count < 0) return UNREAD;
  return take_kernels(batch) ? GOOD : FAILED;
}

PyObject *call_with_rows(OperationCall *call, PyObject *const *given)
{
  Batch batch = {.validator = call->validator,
                 .call = call,
                 .kinds = call->kinds,
                 .arguments = call->arguments,
                 .count = -1};
  PyObject *arrays[MAX_RESULTS] = {NULL}, *answer;
  int argument = -1;
  Status status = take_arguments(&batch, given, &argument);
  if (status == GOOD) status = take_results(&batch, call->result, call->results, arrays);
  if (status == GOOD) {
    BatchOutcome outcome = run_batch(&batch, evaluate_block);
    answer = outcome.status == GOOD ? answer_of(call, arrays, NULL)
                                    : reject_value(outcome.status, outcome.row, outcome.value);
  } else
    answer = reject(status, argument);
  for (int i = 0; i < call->results; i++) Py_XDECREF(arrays[i]);
  free_batch(&batch);
  return answer;
}

/* 1 if it was evaluated; 0 if Python must read the arguments, or explain. */
static int operation_rows(OperationCall *call, const Rows *rows)
{
  Batch batch = {.validator = call->validator,
                 .call = call,
                 .kinds = call->kinds,
                 .arguments = call->arguments,
                 .count = rows->count};
  int good = rows->inputs == call->arguments && rows->ports == rows->inputs + call->results
             && strpbrk(call->kinds, "wsd") == NULL;
  for (int i = 0; good && i < call->arguments; i++) {
    batch.given[i] = (BatchArgument){.numbers = rows->port[i], .size = rows->size[i]};
    good = fit_rows(&batch, i) == GOOD;
  }
  for (int i = 0; good && i < call->results; i++) {
    batch.result[i] = rows->port[rows->inputs + i];
    good = rows->size[rows->inputs + i] == call->slot[call->result[i].slot].size;
  }
  good = good && take_kernels(&batch) && run_batch(&batch, evaluate_block).status == GOOD;
  free_batch(&batch);
  return good;
}

int evaluate_rows(PyObject *callable, const Rows *rows)
{
  int done = 0;
  if (Py_TYPE(callable) == &KernelType) done = kernel_rows((Kernel *)callable, rows) == 1;
  if (Py_TYPE(callable) == &OperationCallType)
    done = operation_rows((OperationCall *)callable, rows);
  PyErr_Clear();
  return done;
}

PyObject *check_rows(StateValidator *validator, PyObject *position, PyObject *velocity)
{
  PyObject *given[] = {position, velocity}, *arrays[2] = {NULL}, *answer;
  const Result results[] = {{0, 1, {validator->nq, 0}}, {1, 1, {validator->ny, 0}}};
  Batch batch = {
      .validator = validator, .kinds = "qv", .arguments = velocity == Py_None ? 1 : 2, .count = -1};
  Status status = GOOD;
  int i = 0;
  for (; status == GOOD && i < batch.arguments; i++)
    status = take_argument(&batch, i, given[i], NULL);
  if (status == GOOD && !take_kernels(&batch)) status = FAILED;
  if (status == GOOD) status = take_results(&batch, results, batch.arguments, arrays);
  if (status == GOOD && batch.arguments == 1) {
    arrays[1] = PyArray_ZEROS(1, &validator->ny, NPY_DOUBLE, 0);
    if (arrays[1] == NULL) status = FAILED;
  }
  if (status == GOOD) {
    BatchOutcome outcome = run_batch(&batch, check_block);
    answer = outcome.status == GOOD
                 ? Py_BuildValue("OOdd", arrays[0], arrays[1], outcome.residual, outcome.worst)
                 : reject(outcome.status, outcome.row);
  } else
    answer = reject(status, i - 1);
  Py_XDECREF(arrays[0]);
  Py_XDECREF(arrays[1]);
  free_batch(&batch);
  return answer;
}

/* Take rows that are to be closed. */
static Status take_positions(Batch *batch, Kernel *closure, const Indices *entries, PyObject *given,
                             const double *guess)
{
  BatchClosure *closing = &batch->closing;
  const StateValidator *validator = batch->validator;
  closing->rows = rows_of(given, &closing->count, &closing->size);
  if (closing->rows == NULL || (closing->size != validator->nq && closing->size != entries->count)
      || !all_within(closing->rows, closing->count * closing->size, validator->largest_position))
    return UNREAD;
  batch->count = closing->count;
  closing->entries = entries;
  closing->guess = guess;
  closing->closure.kernel = (Kernel *)Py_XNewRef((PyObject *)closure);
  return take_kernels(batch) ? GOOD : FAILED;
}

PyObject *close_batch(StateValidator *validator, Kernel *closure, const Indices *entries,
                      PyObject *given, const double *guess)
{
  Batch batch = {.validator = validator};
  const Result result = {0, 1, {validator->nq, 0}};
  PyObject *closed = NULL;
  BatchOutcome outcome = {.row = 0};
  outcome.status = take_positions(&batch, closure, entries, given, guess);
  if (outcome.status == GOOD) outcome.status = take_results(&batch, &result, 1, &closed);
  if (outcome.status == GOOD) outcome = run_batch(&batch, close_block);
  free_batch(&batch);
  if (outcome.status == GOOD) return closed;
  Py_XDECREF(closed);
  return reject(outcome.status, outcome.row);
}

PyObject *close_batch_from(StateValidator *validator, Kernel *closure, const Indices *entries,
                           PyObject *given, const double *guess, PyObject *q, npy_intp first,
                           PyObject *missed)
{
  Batch batch = {.validator = validator};
  PyArrayObject *flags = (PyArrayObject *)missed;
  npy_intp count = -1, size = -1;
  double *into = (double *)rows_of(q, &count, &size);
  BatchOutcome outcome = {.row = -1};
  outcome.status = take_positions(&batch, closure, entries, given, guess);
  if (outcome.status == GOOD
      && (into == NULL || closure == NULL || count != batch.count || size != validator->nq
          || !PyArray_ISWRITEABLE((PyArrayObject *)q) || !PyArray_CheckExact(missed)
          || PyArray_NDIM(flags) != 1 || PyArray_TYPE(flags) != NPY_UINT8
          || PyArray_DIM(flags, 0) != count || !PyArray_ISCARRAY(flags)))
    outcome.status = UNREAD;
  if (outcome.status == GOOD) {
    batch.closing.first = first;
    batch.closing.missed = PyArray_DATA(flags);
    batch.closing.into = batch.result[0] = into;
    outcome = run_batch(&batch, close_block);
  }
  free_batch(&batch);
  return outcome.status == GOOD ? Py_NewRef(Py_None) : reject(outcome.status, outcome.row);
}
