/* A block of rows: checked, evaluated, or closed, and what came of it looked at. */
#include "rows.h"

#include <float.h>

/* Whether results are sound, and solved for where that is wanted. */
static int finish(Share *share, npy_intp count, double *const *slots)
{
  const CheckedCall *call = share->batch->call;
  if (call->finite >= 0
      && !all_within(slots[call->finite], count * call->slot[call->finite].size, DBL_MAX))
    return 0;
  if (call->missed < 0 && call->mass_matrix < 0) return 1;
  Branches branches = {0};
  if (call->branches != NULL) {
    branches = *call->branches;
    branches.work = share->work;
  }
  double *row[MOST_SLOTS];
  for (npy_intp k = 0; k < count; k++) {
    for (int i = 0; i < call->slots; i++) row[i] = slots[i] + k * call->slot[i].size;
    if (!is_sound(call, row) || !solve_results(call, &branches, row)) return 0;
  }
  return 1;
}

/* One kernel, which may have to check the loops as well: whether they hold. */
static int evaluate_step(Share *share, const Step *step, int checks, npy_intp count,
                         double *const *slots)
{
  const RowsCode *rows = &step->kernel->rows;
  double *ports[MOST_PORTS];
  for (int i = 0; i < step->kernel->ports; i++) ports[i] = slots[step->slots[i]];
  if (!checks) {
    rows->evaluate(ports, rows->constants, share->memory, count);
    return 1;
  }
  ports[step->kernel->ports] = share->holding;
  rows->checked(ports, rows->constants, share->memory, count);
  const Kernel *loops = share->batch->reader->loop_state;
  double all = (double)(loops->size[1] + loops->size[2]);
  int good = 1;
  for (npy_intp k = 0; k < count; k++) good &= share->holding[k] == all;
  return good;
}

int evaluate_block(Share *share, npy_intp first, npy_intp count)
{
  const Batch *batch = share->batch;
  const CheckedCall *call = batch->call;
  double *slots[MOST_SLOTS];
  for (int i = 0; i < call->slots; i++) slots[i] = share->slot[i];
  for (int i = 0; i < call->results; i++) {
    int slot = call->result[i].slot;
    slots[slot] = batch->result[i] + first * call->slot[slot].size;
  }
  if (!check_arguments(share, first, count, slots)) return 0;
  for (int k = 0; k < call->steps; k++) {
    const Step *step = &call->step[k];
    if (step->kernel == NULL)
      add_slots(step, slots, count * call->slot[step->slots[2]].size);
    else if (!evaluate_step(share, step, k == 0 && batch->checks_later, count, slots))
      return 0;
  }
  return finish(share, count, slots);
}

int check_block(Share *share, npy_intp first, npy_intp count)
{
  const Batch *batch = share->batch;
  npy_intp size[] = {batch->reader->nq, batch->reader->ny};
  double *slots[] = {share->slot[0], share->slot[1]};
  if (!check_arguments(share, first, count, slots)) return 0;
  for (int i = 0; i < batch->arguments; i++)
    memcpy(batch->result[i] + first * size[i], slots[i], count * size[i] * sizeof(double));
  return 1;
}

int close_block(Share *share, npy_intp first, npy_intp count)
{
  const Batch *batch = share->batch;
  npy_intp nq = batch->reader->nq;
  double *q = batch->result[0] + first * nq;
  if (batch->motion.closure != NULL)
    return close_rows(batch->reader, &batch->motion, share, first, count, q);
  memcpy(q, batch->motion.rows + first * nq, count * nq * sizeof *q);
  return normalize_rows(batch->reader, q, count);
}
