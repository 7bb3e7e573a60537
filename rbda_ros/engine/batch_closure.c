/* Many positions, closed as a motion: each from one nearby. */
#include "batch.h"

static const double *known_of(const BatchClosure *closing, const double *row, double *into)
{
  if (closing->size == closing->entries->count) return row;
  for (npy_intp i = 0; i < closing->entries->count; i++) into[i] = row[closing->entries->index[i]];
  return into;
}

static int is_near(const BatchClosure *closing, const double *row, const double *anchor,
                   double near)
{
  const Indices *entries = closing->entries;
  int whole = closing->size != entries->count;
  for (npy_intp i = 0; i < entries->count; i++) {
    npy_intp at = whole ? entries->index[i] : i;
    if (fabs(row[at] - anchor[at]) > near) return 0;
  }
  return 1;
}

/* Assign an anchor to each row; how many anchors there are. */
static npy_intp find_anchors(const StateValidator *validator, BatchClosure *closing)
{
  npy_intp block = (npy_intp)validator->batch_block, anchors = 0;
  for (npy_intp first = 0, next = 0; first < closing->count; first = next, anchors++) {
    const double *row = closing->rows + first * closing->size;
    for (; next < closing->count && next < first + block; next++) {
      if (!is_near(closing, closing->rows + next * closing->size, row, validator->batch_near))
        break;
      closing->anchor[next] = anchors;
    }
  }
  return anchors;
}

static int is_anchor(const BatchClosure *closing, npy_intp row)
{
  return row == 0 || closing->anchor[row] != closing->anchor[row - 1];
}

/* Whether the quaternions of a row are near unit length. */
static int row_units(const StateValidator *validator, const BatchClosure *closing, npy_intp row)
{
  const double *given = closing->rows + row * closing->size;
  return closing->size == validator->nq ? all_units(validator, given)
                                        : known_units(validator, closing->entries, given);
}

/* The next anchor, closed from the last one. */
static Status close_anchor(const StateValidator *validator, const BatchClosure *closing,
                           npy_intp row, const double *last, double *numbers)
{
  npy_intp nq = validator->nq;
  if (!row_units(validator, closing, row)) return UNREAD;
  const double *known = known_of(closing, closing->rows + row * closing->size, numbers);
  LoopMemory memory = loop_memory(validator, numbers + nq);
  return close_position(validator, &memory, closing->closure.kernel, closing->entries, known, last,
                        closing->q + closing->anchor[row] * nq);
}

Status close_anchors(const StateValidator *validator, BatchClosure *closing, npy_intp *row)
{
  npy_intp nq = validator->nq;
  double *into = closing->into;
  closing->anchor = PyMem_RawMalloc((closing->count + 1) * sizeof *closing->anchor);
  double *numbers = PyMem_RawMalloc((loop_numbers(validator) + nq) * sizeof *numbers);
  Status status = closing->anchor == NULL || numbers == NULL ? FAILED : GOOD;
  if (status == GOOD) {
    npy_intp anchors = find_anchors(validator, closing);
    closing->q = PyMem_RawMalloc((anchors * nq + 1) * sizeof *closing->q);
    if (closing->q == NULL) status = FAILED;
  }
  const double *last = closing->guess;
  if (last == NULL) last = closing->size == nq ? closing->rows : validator->home;
  for (npy_intp k = 0; status == GOOD && k < closing->count; k++) {
    if (!is_anchor(closing, k)) continue;
    double *own = closing->q + closing->anchor[k] * nq;
    if (k < closing->first)
      memcpy(own, into + k * nq, nq * sizeof *own);
    else
      status = close_anchor(validator, closing, k, last, numbers);
    if (into != NULL) memcpy(into + k * nq, status == GOOD ? own : last, nq * sizeof *own);
    last = own;
    *row = k;
  }
  PyMem_RawFree(numbers);
  return status;
}

void free_batch_closure(BatchClosure *closing)
{
  PyMem_RawFree(closing->anchor);
  PyMem_RawFree(closing->q);
  Py_XDECREF(closing->closure.kernel);
}

/* Whether rows are closed, and near the position that they were closed from. Anchors are not judged:
   they were closed before, by smaller steps. */
static Status have_arrived(const StateValidator *validator, const BatchClosure *closing,
                           BatchWorker *worker, npy_intp first, npy_intp count, const double *q)
{
  npy_intp nq = validator->nq, rows = closing->closure.kernel->size[3];
  const npy_intp *curved = validator->curved.index;
  int all = all_within(worker->phi, count * rows, validator->closed);
  for (npy_intp k = 0; k < count; k++) {
    const double *end = q + k * nq, *start = worker->start + k * nq;
    int arrived = all || all_within(worker->phi + k * rows, rows, validator->closed);
    for (npy_intp i = 0; i < validator->curved.count; i++)
      arrived &= fabs(end[curved[i]] - start[curved[i]]) <= validator->nearby;
    if (arrived || is_anchor(closing, first + k)) continue;
    if (closing->missed == NULL) {
      worker->row = first + k;
      return NOT_CLOSED;
    }
    closing->missed[first + k] = 1;
  }
  return GOOD;
}

/* Copy the anchors of some rows to the worker's memory, if they are not there. */
static void start_rows(const StateValidator *validator, const BatchClosure *closing,
                       BatchWorker *worker, npy_intp first, npy_intp count)
{
  npy_intp nq = validator->nq, anchor = closing->anchor[first];
  int one = closing->anchor[first + count - 1] == anchor;
  if (one && worker->started == anchor) return;
  /* Of one anchor fill the whole block: the next call may have more rows. */
  npy_intp rows = one ? worker->batch->block : count;
  for (npy_intp k = 0; k < rows; k++) {
    anchor = one ? anchor : closing->anchor[first + k];
    memcpy(worker->start + k * nq, closing->q + anchor * nq, nq * sizeof(double));
  }
  worker->started = one ? anchor : -1;
}

Status close_rows(const StateValidator *validator, const BatchClosure *closing, BatchWorker *worker,
                  npy_intp first, npy_intp count, double *q)
{
  npy_intp nq = validator->nq, known = closing->entries->count, last = first + count - 1;
  start_rows(validator, closing, worker, first, count);
  if (is_anchor(closing, first) && closing->anchor[last] - closing->anchor[first] == count - 1) {
    memcpy(q, worker->start, count * nq * sizeof *q); /* all of them */
    return GOOD;
  }
  const double *given = closing->rows + first * closing->size;
  if (closing->size != known) {
    for (npy_intp k = 0; k < count; k++)
      known_of(closing, given + k * closing->size, worker->known + k * known);
    given = worker->known;
  }
  double *ports[] = {(double *)given, worker->start, q, worker->phi};
  if (!run_rows(&closing->closure, ports, worker->memory, count)) return FAILED;
  Status status = have_arrived(validator, closing, worker, first, count, q);
  if (status != GOOD) return status;
  for (npy_intp k = 0; k < count; k++) {
    if (is_anchor(closing, first + k)) memcpy(q + k * nq, worker->start + k * nq, nq * sizeof *q);
    if (closing->missed != NULL && closing->missed[first + k]) continue;
    const int units = row_units(validator, closing, first + k);
    if (!units && closing->missed != NULL) {
      closing->missed[first + k] = 1;
      continue;
    }
    if (!units || !normalize(validator, q + k * nq)) {
      worker->row = first + k;
      return units ? NOT_CLOSED : UNREAD;
    }
  }
  return GOOD;
}
