/* A block of rows: validated, evaluated or closed, and what came of it checked. */
#include "batch.h"

#include <float.h>

int run_rows(const BatchKernel *kernel, double *const *ports, double *memory, npy_intp count)
{
  if (kernel->code != NULL) {
    kernel->code->evaluate(ports, kernel->code->constants, memory, count);
    return 1;
  }
  double *row[MAX_PORTS];
  const Kernel *of = kernel->kernel;
  for (npy_intp k = 0; k < count; k++) {
    for (int i = 0; i < of->ports; i++) row[i] = ports[i] + k * of->size[i];
    if (kernel->evaluate != NULL)
      kernel->evaluate(row);
    else if (!interpret_kernel(kernel->kernel, row))
      return 0;
  }
  return 1;
}

/* Whether results are sound, and solved for where that is wanted. */
static Status finish(BatchWorker *worker, npy_intp first, npy_intp count, double *const *slots)
{
  const OperationCall *call = worker->batch->call;
  if (call->missed < 0 && call->mass_matrix < 0
      && (call->finite < 0
          || all_within(slots[call->finite], count * call->slot[call->finite].size, DBL_MAX)))
    return GOOD;
  LtlFactorization ltl = {0};
  if (call->ltl != NULL) {
    ltl = *call->ltl;
    ltl.work = worker->work;
  }
  double *row[MAX_SLOTS];
  for (npy_intp k = 0; k < count; k++) {
    worker->row = first + k;
    for (int i = 0; i < call->slots; i++) row[i] = slots[i] + k * call->slot[i].size;
    Status status = check_results(call, row);
    if (status == LOOPS_MISSED) worker->value = loops_missed(call, row);
    if (status != GOOD) return status;
    if (!solve_results(call, &ltl, row)) return SINGULAR;
  }
  return GOOD;
}

/* One kernel, which may have to check the loops as well: whether they hold. */
static Status evaluate_step(BatchWorker *worker, int k, npy_intp first, npy_intp count,
                            double *const *slots)
{
  const Batch *batch = worker->batch;
  const Step *step = &batch->call->step[k];
  const BatchKernel *kernel = &batch->step[k];
  double *ports[MAX_PORTS];
  for (int i = 0; i < step->kernel->ports; i++) ports[i] = slots[step->slots[i]];
  if (k != 0 || !batch->checks_later)
    return run_rows(kernel, ports, worker->memory, count) ? GOOD : FAILED;
  ports[step->kernel->ports] = worker->holding;
  kernel->code->checked(ports, kernel->code->constants, worker->memory, count);
  const Kernel *loops = batch->validator->loop_state;
  double all = (double)(loops->size[1] + loops->size[2]);
  for (npy_intp i = 0; i < count; i++)
    if (worker->holding[i] != all) {
      worker->row = first + i;
      return OFF_LOOPS; /* or at a dead point: Python looks which it is */
    }
  return GOOD;
}

Status evaluate_block(BatchWorker *worker, npy_intp first, npy_intp count)
{
  const Batch *batch = worker->batch;
  const OperationCall *call = batch->call;
  double *slots[MAX_SLOTS];
  for (int i = 0; i < call->slots; i++) slots[i] = worker->slot[i];
  for (int i = 0; i < call->results; i++) {
    int slot = call->result[i].slot;
    slots[slot] = batch->result[i] + first * call->slot[slot].size;
  }
  Status status = check_arguments(worker, first, count, slots);
  for (int k = 0; status == GOOD && k < call->steps; k++) {
    const Step *step = &call->step[k];
    if (step->kernel == NULL)
      add_slots(step, slots, count * call->slot[step->slots[2]].size);
    else
      status = evaluate_step(worker, k, first, count, slots);
  }
  return status == GOOD ? finish(worker, first, count, slots) : status;
}

Status check_block(BatchWorker *worker, npy_intp first, npy_intp count)
{
  const Batch *batch = worker->batch;
  npy_intp size[] = {batch->validator->nq, batch->validator->ny};
  double *slots[] = {worker->slot[0], worker->slot[1]};
  Status status = check_arguments(worker, first, count, slots);
  for (int i = 0; status == GOOD && i < batch->arguments; i++)
    memcpy(batch->result[i] + first * size[i], slots[i], count * size[i] * sizeof(double));
  return status;
}

Status close_block(BatchWorker *worker, npy_intp first, npy_intp count)
{
  const Batch *batch = worker->batch;
  npy_intp nq = batch->validator->nq;
  double *q = batch->result[0] + first * nq;
  if (batch->closing.closure.kernel != NULL)
    return close_rows(batch->validator, &batch->closing, worker, first, count, q);
  memcpy(q, batch->closing.rows + first * nq, count * nq * sizeof *q);
  npy_intp wrong = normalize_rows(batch->validator, q, count);
  if (wrong < 0) return GOOD;
  worker->row = first + wrong;
  return UNREAD;
}
