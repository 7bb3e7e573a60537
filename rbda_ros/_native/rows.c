/* A block of rows, checked: what `reader.c` does for one state. */
#include "rows.h"

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
  good &= too;
  int all = (good[0] & good[1] & good[2] & good[3]) != 0;
  for (; i < count; i++) all &= fabs(numbers[i]) <= largest;
  return all;
}

int normalize_rows(const Reader *reader, double *q, npy_intp count)
{
  int good = 1;
  if (reader->quaternions.count == 0) return 1;
  for (npy_intp k = 0; good && k < count; k++) good = normalize(reader, q + k * reader->nq);
  return good;
}

static int on_loops(Share *share, const double *q, npy_intp count)
{
  const Reader *reader = share->batch->reader;
  const Kernel *kernel = reader->loop_state;
  if (!reader->has_loops) return 1;
  double *ports[] = {(double *)q, share->phi, share->conditioning};
  kernel->rows.evaluate(ports, kernel->rows.constants, share->memory, count);
  int good = 1;
  for (npy_intp i = 0; i < count * kernel->size[1]; i++) {
    good &= fabs(share->phi[i]) <= reader->on_loops;
    share->residual = larger(fabs(share->phi[i]), share->residual);
  }
  for (npy_intp i = 0; i < count * kernel->size[2]; i++) {
    good &= share->conditioning[i] >= reader->singular;
    share->worst = smaller(share->conditioning[i], share->worst);
  }
  return good;
}

static int check_positions(Share *share, const Given *given, npy_intp first, npy_intp count,
                           double **slot)
{
  const Batch *batch = share->batch;
  const Reader *reader = batch->reader;
  const double *numbers = given->numbers + first * given->size;
  if (!all_within(numbers, count * given->size, reader->largest_position)) return 0;
  int good = 1;
  if (batch->motion.closure != NULL)
    good = close_rows(reader, &batch->motion, share, first, count, *slot);
  else if (reader->quaternions.count == 0)
    *slot = (double *)numbers;
  else {
    memcpy(*slot, numbers, count * reader->nq * sizeof *numbers);
    good = normalize_rows(reader, *slot, count);
  }
  return good && (batch->checks_later || on_loops(share, *slot, count));
}

static int check_velocities(const Reader *reader, const Given *given, npy_intp first,
                            npy_intp count, double **slot)
{
  const double *numbers = given->numbers + first * given->size;
  if (!all_within(numbers, count * given->size, reader->largest)) return 0;
  if (given->size == reader->ny) {
    *slot = (double *)numbers;
    return 1;
  }
  const npy_intp *independent = reader->independent.index;
  for (npy_intp k = 0; k < count; k++)
    for (npy_intp i = 0; i < reader->ny; i++)
      (*slot)[k * reader->ny + i] = numbers[k * given->size + independent[i]];
  return 1;
}

/* Vectors; forces on all joints become those on y. */
static int check_others(Share *share, int i, const double *numbers, npy_intp count, double **slots)
{
  const Batch *batch = share->batch;
  const Kernel *forces = batch->forces;
  if (!all_within(numbers, count * batch->given[i].size, batch->reader->largest)) return 0;
  if (batch->kinds[i] == 'f' && forces != NULL) {
    double *ports[] = {slots[0], (double *)numbers, slots[i]};
    forces->rows.evaluate(ports, forces->rows.constants, share->memory, count);
  } else
    slots[i] = (double *)numbers;
  return 1;
}

int check_arguments(Share *share, npy_intp first, npy_intp count, double **slots)
{
  const Batch *batch = share->batch;
  for (int i = 0; i < batch->arguments; i++) {
    const Given *given = &batch->given[i];
    const double *numbers = given->numbers + (given->single ? 0 : first * given->size);
    int good = 1;
    if (given->single) {
      for (npy_intp k = 0; first == share->first && k < count; k++)
        memcpy(slots[i] + k * given->size, numbers, given->size * sizeof *numbers);
    } else if (given->checked)
      slots[i] = (double *)numbers;
    else if (batch->kinds[i] == 'q')
      good = check_positions(share, given, first, count, &slots[i]);
    else if (batch->kinds[i] == 'v')
      good = check_velocities(batch->reader, given, first, count, &slots[i]);
    else
      good = check_others(share, i, numbers, count, slots);
    if (!good) return 0;
  }
  return 1;
}
