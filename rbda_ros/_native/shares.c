/* Rows of a batch, shared out among threads. */
#define _GNU_SOURCE /* for the processors that a process may use */
#include "rows.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

/* Instructions from which another thread pays (about a millisecond), and from which others should
   be let run meanwhile. As `THREADS_PAY` of kernels/machine.py. */
#define THREADS_PAY 4e6
#define RELEASE_PAYS 4e5

enum { MOST_THREADS = 256, LINE = 8 }; /* LINE: numbers of a cache line */

typedef struct {
  Share share;
  int (*work)(Share *, npy_intp, npy_intp);
  pthread_t thread;
  int started;
  void *memory;
} Worker;

static npy_intp in_lines(npy_intp numbers)
{
  return (numbers + LINE - 1) / LINE * LINE;
}

/* The next numbers of a worker's memory, which may be NULL, to be counted. */
static double *take(double *memory, npy_intp *taken, npy_intp numbers)
{
  double *next = memory == NULL ? NULL : memory + *taken;
  *taken += in_lines(numbers);
  return next;
}

/* Room for a block of rows of everything, in cache lines; how many numbers that takes. */
static npy_intp lay_out(const Batch *batch, Share *share, double *memory)
{
  const Reader *reader = batch->reader;
  const CheckedCall *call = batch->call;
  const Branches *branches = call ? call->branches : NULL;
  npy_intp block = batch->block, nq = reader->nq, taken = 0;
  npy_intp rows = reader->loop_state ? reader->loop_state->size[1] : 0;
  npy_intp loops = reader->loop_state ? reader->loop_state->size[2] : 0;
  share->memory = take(memory, &taken, batch->code_memory);
  for (int i = 0; call != NULL && i < call->slots; i++)
    share->slot[i] = take(memory, &taken, block * call->slot[i].size);
  if (call == NULL) {
    share->slot[0] = take(memory, &taken, block * nq);
    share->slot[1] = take(memory, &taken, block * reader->ny);
  }
  share->start = take(memory, &taken, batch->motion.closure ? block * nq : 0);
  share->known = take(memory, &taken, batch->motion.closure ? block * nq : 0);
  share->phi = take(memory, &taken, block * rows);
  share->conditioning = take(memory, &taken, block * loops);
  share->holding = take(memory, &taken, batch->checks_later ? block : 0);
  share->work = take(memory, &taken, branches ? branches->n * branches->stride : 0);
  return taken;
}

static void *run(void *argument)
{
  Worker *worker = argument;
  Share *share = &worker->share;
  npy_intp end = share->first + share->count, block = share->batch->block;
  for (npy_intp first = share->first; share->good && first < end; first += block)
    share->good = worker->work(share, first, block < end - first ? block : end - first);
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
  if (work < THREADS_PAY) return 1;
  npy_intp most = processors();
  most = most < 1 ? 1 : most > MOST_THREADS ? MOST_THREADS : most;
  return work / THREADS_PAY + 1.0 < (double)most ? (npy_intp)(work / THREADS_PAY) + 1 : most;
}

/* A worker with its memory, and what is constant in it; 0 for want of it. */
static int prepare_worker(Worker *worker, const Batch *batch, npy_intp first, npy_intp count)
{
  Share counted;
  npy_intp numbers = lay_out(batch, &counted, NULL);
  worker->memory = PyMem_RawMalloc((numbers + LINE) * sizeof(double));
  if (worker->memory == NULL) return 0;
  uintptr_t aligned = ((uintptr_t)worker->memory + 63) / 64 * 64;
  worker->share = (Share){
      .batch = batch, .first = first, .count = count, .started = -1, .worst = 1.0, .good = 1};
  lay_out(batch, &worker->share, (double *)aligned);
  for (int i = batch->arguments; batch->call != NULL && i < batch->call->slots; i++) {
    const Slot *slot = &batch->call->slot[i];
    for (npy_intp k = 0; slot->constant && k < batch->block; k++)
      memcpy(worker->share.slot[i] + k * slot->size, slot->fixed, slot->size * sizeof(double));
  }
  return 1;
}

static int run_threads(const Batch *batch, int (*work)(Share *, npy_intp, npy_intp),
                       double *residual, double *worst)
{
  npy_intp threads = threads_for(batch);
  npy_intp each = (batch->count + threads - 1) / threads;
  each = (each + batch->block - 1) / batch->block * batch->block;
  Worker *workers = PyMem_RawCalloc(threads, sizeof *workers);
  int good = workers != NULL;
  *residual = 0.0;
  *worst = 1.0;
  npy_intp used = 0;
  for (npy_intp first = 0; good && first < batch->count; first += each, used++) {
    Worker *worker = &workers[used];
    npy_intp left = batch->count - first;
    good = prepare_worker(worker, batch, first, each < left ? each : left);
    worker->work = work;
  }
  for (npy_intp k = 1; good && k < used; k++)
    workers[k].started = pthread_create(&workers[k].thread, NULL, run, &workers[k]) == 0;
  for (npy_intp k = 0; good && k < used; k++)
    if (!workers[k].started) run(&workers[k]);
  for (npy_intp k = 0; workers != NULL && k < threads; k++) {
    Worker *worker = &workers[k];
    if (worker->started) pthread_join(worker->thread, NULL);
    PyMem_RawFree(worker->memory);
    if (k >= used) continue;
    good &= worker->share.good;
    *residual = larger(worker->share.residual, *residual);
    *worst = smaller(worker->share.worst, *worst);
  }
  PyMem_RawFree(workers);
  return good;
}

int run_batch(Batch *batch, int (*work)(Share *, npy_intp, npy_intp), double *residual,
              double *worst)
{
  PyThreadState *state = NULL;
  if (batch->instructions * (double)batch->count >= RELEASE_PAYS) state = PyEval_SaveThread();
  int good = batch->motion.closure == NULL || close_anchors(batch->reader, &batch->motion);
  good = good && run_threads(batch, work, residual, worst);
  if (state != NULL) PyEval_RestoreThread(state);
  return good;
}
