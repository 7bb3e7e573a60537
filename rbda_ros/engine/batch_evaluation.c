/* A block of rows: validated as `state_validator.c` does for one state, evaluated or closed, and the
   results checked. */
#include "batch.h"

#include <float.h>

typedef int64_t FourFlags __attribute__((vector_size(32)));

WIDE int all_within(const double *numbers, npy_intp count, double largest)
{
  FourFlags good = {-1, -1, -1, -1}, too = good;
  npy_intp i = 0;
  for (; i + 8 <= count; i += 8) {
    Four a = *(const Four *)(numbers + i), b = *(const Four *)(numbers + i + 4);
    good &= (a <= largest) & (a >= -largest);
    too &= (b <= largest) & (b >= -largest);
  }
  if (count - i >= 4) {
    Four a = *(const Four *)(numbers + i);
    good &= (a <= largest) & (a >= -largest);
    i += 4;
  }
  if (i > 0 && i < count) { /* the last four, some of them again */
    Four b = *(const Four *)(numbers + count - 4);
    too &= (b <= largest) & (b >= -largest);
    i = count;
  }
  good &= too;
  int all = (good[0] & good[1] & good[2] & good[3]) != 0;
  for (; i < count; i++) all &= fabs(numbers[i]) <= largest;
  return all;
}

/* Reject the first of some rows with a number that is too large, or NaN. */
static Status reject_numbers(BatchWorker *worker, const double *numbers, npy_intp first,
                             npy_intp count, npy_intp size, double largest)
{
  for (npy_intp k = 0; k < count; k++)
    if (!all_within(numbers + k * size, size, largest)) {
      worker->row = first + k;
      break;
    }
  return UNREAD;
}

npy_intp normalize_rows(const StateValidator *validator, double *q, npy_intp count)
{
  if (validator->quaternions.count == 0) return -1;
  for (npy_intp k = 0; k < count; k++)
    if (!normalize(validator, q + k * validator->nq)) return k;
  return -1;
}

static Status on_loops(BatchWorker *worker, const double *q, npy_intp first, npy_intp count)
{
  const StateValidator *validator = worker->batch->validator;
  if (!validator->has_loops) return GOOD;
  const npy_intp *size = validator->loop_state->size;
  double *ports[] = {(double *)q, worker->phi, worker->conditioning};
  if (!run_rows(&worker->batch->loop_state, ports, worker->memory, count)) return FAILED;
  double residual, worst;
  Status status = judge_loops(worker->phi, count * size[1], worker->conditioning, count * size[2],
                              validator->on_loops, validator->singular, &residual, &worst);
  worker->residual = larger(residual, worker->residual);
  worker->worst = smaller(worst, worker->worst);
  if (status == GOOD) return GOOD;
  for (npy_intp k = 0; k < count; k++) {
    worker->row = first + k;
    status = judge_loops(worker->phi + k * size[1], size[1], worker->conditioning + k * size[2],
                         size[2], validator->on_loops, validator->singular, &residual, &worst);
    if (status != GOOD) break;
  }
  return status;
}

static Status check_positions(BatchWorker *worker, const BatchArgument *given, npy_intp first,
                              npy_intp count, double **slot)
{
  const Batch *batch = worker->batch;
  const StateValidator *validator = batch->validator;
  const double *numbers = given->numbers + first * given->size;
  if (!all_within(numbers, count * given->size, validator->largest_position))
    return reject_numbers(worker, numbers, first, count, given->size, validator->largest_position);
  if (batch->closing.closure.kernel != NULL) {
    Status status = close_rows(validator, &batch->closing, worker, first, count, *slot);
    if (status != GOOD) return status;
  } else if (validator->quaternions.count == 0)
    *slot = (double *)numbers;
  else {
    memcpy(*slot, numbers, count * validator->nq * sizeof *numbers);
    npy_intp wrong = normalize_rows(validator, *slot, count);
    if (wrong >= 0) {
      worker->row = first + wrong;
      return UNREAD;
    }
  }
  return batch->checks_later ? GOOD : on_loops(worker, *slot, first, count);
}

static Status check_velocities(BatchWorker *worker, const BatchArgument *given, npy_intp first,
                               npy_intp count, double **slot)
{
  const StateValidator *validator = worker->batch->validator;
  const double *numbers = given->numbers + first * given->size;
  if (!all_within(numbers, count * given->size, validator->largest))
    return reject_numbers(worker, numbers, first, count, given->size, validator->largest);
  if (given->size == validator->ny) {
    *slot = (double *)numbers;
    return GOOD;
  }
  const npy_intp *independent = validator->independent.index;
  for (npy_intp k = 0; k < count; k++)
    for (npy_intp i = 0; i < validator->ny; i++)
      (*slot)[k * validator->ny + i] = numbers[k * given->size + independent[i]];
  return GOOD;
}

/* Vectors; forces on all joints become those on y. */
static Status check_others(BatchWorker *worker, int i, npy_intp first, npy_intp count,
                           double **slots)
{
  const Batch *batch = worker->batch;
  npy_intp size = batch->given[i].size;
  const double *numbers = batch->given[i].numbers + first * size;
  if (!all_within(numbers, count * size, batch->validator->largest))
    return reject_numbers(worker, numbers, first, count, size, batch->validator->largest);
  if (batch->kinds[i] == 'f' && batch->turns_forces) {
    double *ports[] = {slots[0], (double *)numbers, slots[i]};
    if (!run_rows(&batch->forces, ports, worker->memory, count)) return FAILED;
  } else
    slots[i] = (double *)numbers;
  return GOOD;
}

Status check_arguments(BatchWorker *worker, npy_intp first, npy_intp count, double **slots)
{
  const Batch *batch = worker->batch;
  for (int i = 0; i < batch->arguments; i++) {
    const BatchArgument *given = &batch->given[i];
    Status status = GOOD;
    if (given->single) {
      for (npy_intp k = 0; first == worker->first && k < count; k++)
        memcpy(slots[i] + k * given->size, given->numbers, given->size * sizeof(double));
    } else if (given->checked)
      slots[i] = (double *)given->numbers + first * given->size;
    else if (batch->kinds[i] == 'q')
      status = check_positions(worker, given, first, count, &slots[i]);
    else if (batch->kinds[i] == 'v')
      status = check_velocities(worker, given, first, count, &slots[i]);
    else
      status = check_others(worker, i, first, count, slots);
    if (status != GOOD) return status;
  }
  return GOOD;
}

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

/* Check results, and solve for them with the mass matrix if the operation does. */
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

/* One kernel, which may check the loops as well. */
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
      return OFF_LOOPS; /* or at a dead point: Python finds out which */
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
