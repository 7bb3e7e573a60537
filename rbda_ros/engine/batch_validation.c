/* A block of rows, checked: what `validator.c` does for one state. */
#include "batch.h"

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
  if (i > 0 && i < count) { /* some of these once more */
    Four b = *(const Four *)(numbers + count - 4);
    too &= (b <= largest) & (b >= -largest);
    i = count;
  }
  good &= too;
  int all = (good[0] & good[1] & good[2] & good[3]) != 0;
  for (; i < count; i++) all &= fabs(numbers[i]) <= largest;
  return all;
}

/* The first of some rows with a number that is too large, or none. */
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
  int closed = 1, regular = 1;
  for (npy_intp i = 0; i < count * size[1]; i++) {
    closed &= fabs(worker->phi[i]) <= validator->on_loops;
    worker->residual = larger(fabs(worker->phi[i]), worker->residual);
  }
  for (npy_intp i = 0; i < count * size[2]; i++) {
    regular &= worker->conditioning[i] >= validator->singular;
    worker->worst = smaller(worker->conditioning[i], worker->worst);
  }
  if (closed && regular) return GOOD;
  for (npy_intp k = 0; k < count; k++) {
    worker->row = first + k;
    if (!all_within(worker->phi + k * size[1], size[1], validator->on_loops)) return OFF_LOOPS;
    for (npy_intp i = 0; i < size[2]; i++)
      if (!(worker->conditioning[k * size[2] + i] >= validator->singular)) return DEAD_POINT;
  }
  return OFF_LOOPS;
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
