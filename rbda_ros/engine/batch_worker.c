/* Work on the rows of a batch, by several threads where that pays. */
#define _GNU_SOURCE /* for the processors that a process may use */
#include "batch.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

/* Instructions from which another thread pays (about a millisecond), and from which releasing the
   interpreter lock does. */
#define THREADS_PAY 4e6
#define RELEASE_PAYS 4e5

enum { MAX_THREADS = 256, LINE = 8 }; /* LINE: numbers of a cache line */

typedef struct {
  BatchWorker worker;
  BlockWork work;
  Status status;
  pthread_t thread;
  int started;
  void *memory;
} Thread;

static npy_intp in_lines(npy_intp numbers)
{
  return (numbers + LINE - 1) / LINE * LINE;
}

/* The next numbers of a worker's memory. With NULL for the memory they are only counted. */
static double *take(double *memory, npy_intp *taken, npy_intp numbers)
{
  double *next = memory == NULL ? NULL : memory + *taken;
  *taken += in_lines(numbers);
  return next;
}

/* Lay out a worker's memory for a block of rows, in cache lines; how many numbers that takes. */
static npy_intp lay_out(const Batch *batch, BatchWorker *worker, double *memory)
{
  const StateValidator *validator = batch->validator;
  const OperationCall *call = batch->call;
  const LtlFactorization *ltl = call ? call->ltl : NULL;
  npy_intp block = batch->block, taken = 0;
  worker->memory = take(memory, &taken, batch->code_memory);
  if (validator == NULL) return taken;
  npy_intp nq = validator->nq;
  npy_intp rows = validator->loop_state ? validator->loop_state->size[1] : 0;
  npy_intp loops = validator->loop_state ? validator->loop_state->size[2] : 0;
  for (int i = 0; call != NULL && i < call->slots; i++)
    worker->slot[i] = take(memory, &taken, block * call->slot[i].size);
  if (call == NULL) {
    worker->slot[0] = take(memory, &taken, block * nq);
    worker->slot[1] = take(memory, &taken, block * validator->ny);
  }
  worker->start = take(memory, &taken, batch->closing.closure.kernel ? block * nq : 0);
  worker->known = take(memory, &taken, batch->closing.closure.kernel ? block * nq : 0);
  worker->phi = take(memory, &taken, block * rows);
  worker->conditioning = take(memory, &taken, block * loops);
  worker->holding = take(memory, &taken, batch->checks_later ? block : 0);
  worker->work = take(memory, &taken, ltl ? ltl->n * ltl->stride : 0);
  return taken;
}

static void *run(void *argument)
{
  Thread *thread = argument;
  BatchWorker *worker = &thread->worker;
  npy_intp end = worker->first + worker->count, block = worker->batch->block;
  for (npy_intp first = worker->first; thread->status == GOOD && first < end; first += block)
    thread->status = thread->work(worker, first, block < end - first ? block : end - first);
  return NULL;
}

static npy_intp processors(void)
{
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  return sysconf(_SC_NPROCESSORS_ONLN);
}

static npy_intp threads_for(const Batch *batch)
{
  double work = batch->instructions * (double)batch->count;
  if (work < THREADS_PAY || batch->interpreted) return 1;
  npy_intp most = processors();
  most = most < 1 ? 1 : most > MAX_THREADS ? MAX_THREADS : most;
  return work / THREADS_PAY + 1.0 < (double)most ? (npy_intp)(work / THREADS_PAY) + 1 : most;
}

/* Allocate the memory of a worker, and fill its constants; 0 if there is no memory. */
static int prepare_worker(Thread *thread, const Batch *batch, npy_intp first, npy_intp count)
{
  BatchWorker counted;
  npy_intp numbers = lay_out(batch, &counted, NULL);
  thread->memory = PyMem_RawMalloc((numbers + LINE) * sizeof(double));
  if (thread->memory == NULL) return 0;
  uintptr_t aligned = ((uintptr_t)thread->memory + 63) / 64 * 64;
  thread->worker = (BatchWorker){
      .batch = batch, .first = first, .count = count, .started = -1, .worst = 1.0, .row = -1};
  lay_out(batch, &thread->worker, (double *)aligned);
  const OperationCall *call = batch->call;
  if (call != NULL && call->ltl != NULL)
    memset(thread->worker.work, 0, call->ltl->n * call->ltl->stride * sizeof(double));
  for (int i = batch->arguments; call != NULL && i < call->slots; i++) {
    const Slot *slot = &call->slot[i];
    for (npy_intp k = 0; slot->constant && k < batch->block; k++)
      memcpy(thread->worker.slot[i] + k * slot->size, call->memory + slot->offset,
             slot->size * sizeof(double));
  }
  return 1;
}

/* The first rejection of all. */
static void add_outcome(BatchOutcome *outcome, const Thread *thread)
{
  const BatchWorker *worker = &thread->worker;
  outcome->residual = larger(worker->residual, outcome->residual);
  outcome->worst = smaller(worker->worst, outcome->worst);
  if (outcome->status != GOOD || thread->status == GOOD) return;
  outcome->status = thread->status;
  outcome->row = worker->row;
  outcome->value = worker->value;
}

static BatchOutcome run_threads(const Batch *batch, BlockWork work)
{
  BatchOutcome outcome = {.row = -1, .worst = 1.0};
  npy_intp threads = threads_for(batch);
  npy_intp each = (batch->count + threads - 1) / threads;
  each = (each + batch->block - 1) / batch->block * batch->block;
  Thread *all = PyMem_RawCalloc(threads, sizeof *all);
  int good = all != NULL;
  npy_intp used = 0;
  for (npy_intp first = 0; good && first < batch->count; first += each, used++) {
    npy_intp left = batch->count - first;
    good = prepare_worker(&all[used], batch, first, each < left ? each : left);
    all[used].work = work;
  }
  if (!good) outcome.status = FAILED;
  for (npy_intp k = 1; good && k < used; k++)
    all[k].started = pthread_create(&all[k].thread, NULL, run, &all[k]) == 0;
  for (npy_intp k = 0; good && k < used; k++)
    if (!all[k].started) run(&all[k]);
  for (npy_intp k = 0; all != NULL && k < threads; k++) {
    if (all[k].started) pthread_join(all[k].thread, NULL);
    PyMem_RawFree(all[k].memory);
    if (k < used) add_outcome(&outcome, &all[k]);
  }
  PyMem_RawFree(all);
  return outcome;
}

BatchOutcome run_batch(Batch *batch, BlockWork work)
{
  PyThreadState *state = NULL;
  BatchOutcome outcome = {.row = -1, .worst = 1.0};
  if (batch->instructions * (double)batch->count >= RELEASE_PAYS && !batch->interpreted)
    state = PyEval_SaveThread();
  if (batch->closing.closure.kernel != NULL)
    outcome.status = close_anchors(batch->validator, &batch->closing, &outcome.row);
  if (outcome.status == GOOD) outcome = run_threads(batch, work);
  if (state != NULL) PyEval_RestoreThread(state);
  if (outcome.status == FAILED && !PyErr_Occurred()) PyErr_NoMemory();
  return outcome;
}
