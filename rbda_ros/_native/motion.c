/* Many positions, closed as a motion: what `LoopCloser._close_along` does, number by number. */
#include "rows.h"

static const double *known_of(const Motion *motion, const double *row, double *into)
{
  if (motion->size == motion->entries->count) return row;
  for (npy_intp i = 0; i < motion->entries->count; i++) into[i] = row[motion->entries->index[i]];
  return into;
}

static int is_near(const Motion *motion, const double *row, const double *anchor, double near)
{
  const Indices *entries = motion->entries;
  int whole = motion->size != entries->count;
  for (npy_intp i = 0; i < entries->count; i++) {
    npy_intp at = whole ? entries->index[i] : i;
    if (fabs(row[at] - anchor[at]) > near) return 0;
  }
  return 1;
}

/* Which rows are anchors, and of which rows: how many there are. */
static npy_intp find_anchors(const Reader *reader, Motion *motion)
{
  npy_intp block = (npy_intp)reader->batch_block, anchors = 0;
  for (npy_intp first = 0, next = 0; first < motion->count; first = next, anchors++) {
    const double *row = motion->rows + first * motion->size;
    for (; next < motion->count && next < first + block; next++) {
      if (!is_near(motion, motion->rows + next * motion->size, row, reader->batch_near)) break;
      motion->anchor[next] = anchors;
    }
  }
  return anchors;
}

static int is_anchor(const Motion *motion, npy_intp row)
{
  return row == 0 || motion->anchor[row] != motion->anchor[row - 1];
}

int close_anchors(const Reader *reader, Motion *motion)
{
  npy_intp nq = reader->nq;
  motion->anchor = PyMem_RawMalloc(motion->count * sizeof *motion->anchor);
  double *numbers = PyMem_RawMalloc((loop_numbers(reader) + nq) * sizeof *numbers);
  int good = motion->anchor != NULL && numbers != NULL;
  if (good) motion->q = PyMem_RawMalloc(find_anchors(reader, motion) * nq * sizeof *motion->q);
  good = good && motion->q != NULL;
  const double *last = motion->guess;
  if (last == NULL) last = motion->size == nq ? motion->rows : reader->home;
  for (npy_intp k = 0; good && k < motion->count; k++) {
    if (!is_anchor(motion, k)) continue;
    const double *known = known_of(motion, motion->rows + k * motion->size, numbers);
    double *q = motion->q + motion->anchor[k] * nq;
    good = close_loops(reader, loop_memory(reader, numbers + nq), motion->closure, motion->entries,
                       known, last, q);
    last = q;
  }
  PyMem_RawFree(numbers);
  return good;
}

void free_motion(Motion *motion)
{
  PyMem_RawFree(motion->anchor);
  PyMem_RawFree(motion->q);
  Py_XDECREF(motion->closure);
}

/* Whether rows are closed, and not far from where they were closed from; anchors are: they were
   closed before, by smaller steps. */
static int have_arrived(const Reader *reader, const Motion *motion, const Share *share,
                        npy_intp first, npy_intp count, const double *q)
{
  npy_intp nq = reader->nq, rows = motion->closure->size[3];
  const npy_intp *curved = reader->curved.index;
  int all = all_within(share->phi, count * rows, reader->closed), good = 1;
  for (npy_intp k = 0; k < count; k++) {
    const double *end = q + k * nq, *start = share->start + k * nq;
    int arrived = all || all_within(share->phi + k * rows, rows, reader->closed);
    for (npy_intp i = 0; i < reader->curved.count; i++)
      arrived &= fabs(end[curved[i]] - start[curved[i]]) <= reader->nearby;
    good &= arrived || is_anchor(motion, first + k);
  }
  return good;
}

/* The anchors of some rows, in the share's memory, where they may be already. */
static void start_rows(const Reader *reader, const Motion *motion, Share *share, npy_intp first,
                       npy_intp count)
{
  npy_intp nq = reader->nq, anchor = motion->anchor[first];
  int one = motion->anchor[first + count - 1] == anchor;
  if (one && share->started == anchor) return;
  /* Of one anchor, all of the block: the next rows may be more than these. */
  npy_intp rows = one ? share->batch->block : count;
  for (npy_intp k = 0; k < rows; k++) {
    anchor = one ? anchor : motion->anchor[first + k];
    memcpy(share->start + k * nq, motion->q + anchor * nq, nq * sizeof(double));
  }
  share->started = one ? anchor : -1;
}

int close_rows(const Reader *reader, const Motion *motion, Share *share, npy_intp first,
               npy_intp count, double *q)
{
  npy_intp nq = reader->nq, known = motion->entries->count, last = first + count - 1;
  start_rows(reader, motion, share, first, count);
  if (is_anchor(motion, first) && motion->anchor[last] - motion->anchor[first] == count - 1) {
    memcpy(q, share->start, count * nq * sizeof *q); /* all of them */
    return 1;
  }
  const double *given = motion->rows + first * motion->size;
  if (motion->size != known) {
    for (npy_intp k = 0; k < count; k++)
      known_of(motion, given + k * motion->size, share->known + k * known);
    given = share->known;
  }
  const RowsCode *code = &motion->closure->rows;
  double *ports[] = {(double *)given, share->start, q, share->phi};
  code->evaluate(ports, code->constants, share->memory, count);
  if (!have_arrived(reader, motion, share, first, count, q)) return 0;
  for (npy_intp k = 0; k < count; k++)
    if (is_anchor(motion, first + k)) memcpy(q + k * nq, share->start + k * nq, nq * sizeof *q);
  return normalize_rows(reader, q, count);
}
