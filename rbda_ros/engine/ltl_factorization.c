/* Linear equations with a mass matrix, along the ltl of its robot: `algorithms/ltl.py`
   in C. Each number is computed by the same operations in the same order, so that both give the
   same to the last bit; but many columns at a time, which stay in registers. */
#include "engine.h"

#include <float.h>

/* Columns that are solved for at a time: in vectors of four, since a compiler keeps wider ones in
   memory where the processor has no AVX-512, which takes ten times as long. */
enum { LANES = 4, MAX_VECTORS = 8 };

/* Coordinates on the way from each to the base, and those that each carries, in lists. */
static void list_ltl(LtlFactorization *ltl, const npy_intp *parent)
{
  npy_intp n = ltl->n, *next = ltl->above, *below = ltl->below;
  for (npy_intp k = 0; k < n; k++) {
    ltl->start[k] = next - ltl->above;
    for (npy_intp i = parent[k]; i >= 0; i = parent[i]) *next++ = i;
  }
  ltl->start[n] = next - ltl->above;
  next = below;
  for (npy_intp i = 0; i < n; i++) {
    ltl->start_below[i] = next - below;
    for (npy_intp k = n - 1; k > i; k--) {
      npy_intp above = k;
      while (above > i) above = parent[above];
      if (above == i) *next++ = k;
    }
  }
  ltl->start_below[n] = next - below;
  /* Those with fewest above come first: neighbours wait for each other least. */
  next = ltl->order;
  for (npy_intp depth = 0; depth < n; depth++)
    for (npy_intp k = 0; k < n; k++)
      if (ltl->start[k + 1] - ltl->start[k] == depth) *next++ = k;
}

LtlFactorization *new_ltl(PyObject *parents, npy_intp n, int matrices)
{
  Indices parent = {0, NULL};
  if (!copy_indices(&parent, parents, -1, n)) return NULL;
  npy_intp pairs = 0, most = 0;
  int good = parent.count == n;
  for (npy_intp k = 0; good && k < n; k++) {
    npy_intp before = pairs;
    good = parent.index[k] < k;
    for (npy_intp i = parent.index[k]; good && i >= 0; i = parent.index[i]) pairs++;
    most = pairs - before > most ? pairs - before : most;
  }
  npy_intp stride = (matrices * n + 2 * LANES - 1) / (2 * LANES) * (2 * LANES);
  npy_intp wide = (most / LANES + 1) * LANES;
  if (matrices == 1) stride = wide + (n + LANES - 1) / LANES * LANES;
  LtlFactorization *ltl = NULL;
  if (good)
    ltl = PyMem_Calloc(1, sizeof *ltl + (3 * n + 2 + 2 * pairs) * sizeof(npy_intp)
                              + n * stride * sizeof(double) + 64);
  if (ltl != NULL) {
    ltl->n = n;
    ltl->stride = stride;
    ltl->wide = wide;
    /* No vector lies across cache lines. */
    ltl->work = (double *)(((uintptr_t)(ltl + 1) + 63) / 64 * 64);
    ltl->start = (npy_intp *)(ltl->work + n * stride);
    ltl->start_below = ltl->start + n + 1;
    ltl->above = ltl->start_below + n + 1;
    ltl->below = ltl->above + pairs;
    ltl->order = ltl->below + pairs;
    list_ltl(ltl, parent.index);
  }
  PyMem_Free(parent.index);
  return ltl;
}

int factor_ltl(const LtlFactorization *ltl, double *H)
{
  return factor_by_branches(ltl->start, ltl->above, ltl->n, H);
}

/* A row of columns, less multiples of others, times a number: its vectors stay in registers. */
static inline __attribute__((always_inline)) void
reduce(double *own, const double *work, npy_intp stride, const npy_intp *others, npy_intp count,
       const double *L, npy_intp step, int by_others, double factor, const int vectors)
{
  Four sum[MAX_VECTORS];
  for (int v = 0; v < vectors; v++) sum[v] = ((Four *)own)[v];
  for (npy_intp a = 0; a < count; a++) {
    const Four *other = (const Four *)(work + others[a] * stride);
    double times = L[by_others ? others[a] * step : others[a]];
    for (int v = 0; v < vectors; v++) sum[v] -= times * other[v];
  }
  for (int v = 0; v < vectors; v++) ((Four *)own)[v] = sum[v] * factor;
}

/* Some columns of the work, from its row 0: L' Z = B, then L X = Z. */
static inline __attribute__((always_inline)) void
solve_vectors(const LtlFactorization *ltl, const double *L, double *work, const int vectors)
{
  npy_intp n = ltl->n, stride = ltl->stride;
  const npy_intp *start = ltl->start_below;
  for (npy_intp i = n - 1; i >= 0; i--)
    reduce(work + i * stride, work, stride, ltl->below + start[i], start[i + 1] - start[i], L + i,
           n, 1, 1.0 / L[i * n + i], vectors);
  start = ltl->start;
  for (npy_intp k = 0; k < n; k++)
    reduce(work + k * stride, work, stride, ltl->above + start[k], start[k + 1] - start[k],
           L + k * n, n, 0, 1.0 / L[k * n + k], vectors);
}

CLONES("avx512f", "avx2")
static void solve_columns(const LtlFactorization *ltl, const double *L, npy_intp columns)
{
  for (npy_intp at = 0; at < columns; at += MAX_VECTORS * LANES) {
    double *work = ltl->work + at;
    npy_intp left = columns - at;
    if (left <= 2 * LANES)
      solve_vectors(ltl, L, work, 2);
    else if (left <= 4 * LANES)
      solve_vectors(ltl, L, work, 4);
    else if (left <= 6 * LANES)
      solve_vectors(ltl, L, work, 6);
    else
      solve_vectors(ltl, L, work, MAX_VECTORS);
  }
}

void solve_ltl(const LtlFactorization *ltl, const double *L, double *const *B, int matrices,
               double sign, double *inverse)
{
  npy_intp n = ltl->n, stride = ltl->stride, columns = matrices * n;
  for (npy_intp k = 0; k < n; k++) {
    double *row = ltl->work + k * stride;
    for (int m = 0; m < matrices; m++) memcpy(row + m * n, B[m] + k * n, n * sizeof *row);
    memset(row + columns, 0, (stride - columns) * sizeof *row);
    row[columns + k] = 1.0;
  }
  solve_columns(ltl, L, columns + n);
  for (npy_intp k = 0; k < n; k++) {
    const double *row = ltl->work + k * stride;
    for (int m = 0; m < matrices; m++)
      for (npy_intp j = 0; j < n; j++) B[m][k * n + j] = sign * row[m * n + j];
    memcpy(inverse + k * n, row + columns, n * sizeof *row);
  }
}

/* The inverse has two rows of the work side by side for each coordinate. In the first are entries of
   all coordinates that carry it, from the base on, and its own. As what carries j comes first in
   the row of k too, rows are subtracted from each other as they are, in whole vectors. Numbers that
   were written one by one are read as vectors only much later: the processor would have to wait. */

/* Columns of the inverse that are computed at a time. */
enum { PANEL = 4 * LANES };

/* Call a function with a number of vectors, 1 to 8, that the compiler knows: in registers. */
#define WITH_VECTORS(vectors, call)                                                                \
  switch (vectors) {                                                                               \
  case 1:                                                                                          \
    call(1);                                                                                       \
    break;                                                                                         \
  case 2:                                                                                          \
    call(2);                                                                                       \
    break;                                                                                         \
  case 3:                                                                                          \
    call(3);                                                                                       \
    break;                                                                                         \
  case 4:                                                                                          \
    call(4);                                                                                       \
    break;                                                                                         \
  case 5:                                                                                          \
    call(5);                                                                                       \
    break;                                                                                         \
  case 6:                                                                                          \
    call(6);                                                                                       \
    break;                                                                                         \
  case 7:                                                                                          \
    call(7);                                                                                       \
    break;                                                                                         \
  default:                                                                                         \
    call(8);                                                                                       \
  }

/* From the rows of those that carry k, `first` to `last` from the base on, their part of row k:
   vectors from `at` on. */
static inline __attribute__((always_inline)) void
subtract_from(const LtlFactorization *ltl, const npy_intp *nearest, npy_intp first, npy_intp last,
              const double *row, double inverse, npy_intp at, const int vectors)
{
  const Four *own = (const Four *)(row + at);
  for (npy_intp i = last; i >= first; i--) {
    Four *other = (Four *)(ltl->work + nearest[-i] * ltl->stride + at);
    double times = row[i] * inverse;
    for (int v = 0; v < vectors; v++) other[v] -= times * own[v];
  }
}

/* H = L' D L, from the tips to the base: the first rows become L_kj, then 2, then 0; the second
   D^-1. 0 where H is singular. */
static inline __attribute__((always_inline)) int factor_rows(const LtlFactorization *ltl,
                                                             const double *H)
{
  npy_intp n = ltl->n, stride = ltl->stride;
  double *work = ltl->work;
  for (npy_intp k = 0; k < n; k++) {
    npy_intp count = ltl->start[k + 1] - ltl->start[k];
    const npy_intp *nearest = ltl->above + ltl->start[k] + count - 1;
    double *row = work + k * stride;
    for (npy_intp i = 0; i < count; i++) row[i] = H[k * n + nearest[-i]];
    row[count] = H[k * n + k];
  }
  for (npy_intp o = n - 1; o >= 0; o--) {
    npy_intp k = ltl->order[o], count = ltl->start[k + 1] - ltl->start[k];
    const npy_intp *nearest = ltl->above + ltl->start[k] + count - 1;
    double *row = work + k * stride;
    if (!(row[count] > 0.0)) return 0;
    double inverse = 1.0 / row[count];
    for (npy_intp last = count - 1; last >= 0; last = last / LANES * LANES - 1) {
      npy_intp first = last / LANES * LANES;
      for (npy_intp at = 0; at <= last; at += MAX_VECTORS * LANES) {
#define SUBTRACT_FROM(vectors) subtract_from(ltl, nearest, first, last, row, inverse, at, vectors)
        WITH_VECTORS((last - at) / LANES + 1, SUBTRACT_FROM)
      }
    }
    for (npy_intp v = 0; v <= count / LANES; v++) ((Four *)row)[v] *= inverse;
    row[ltl->wide + k] = inverse;
    row[count] = 2.0;
    for (npy_intp i = count + 1; i % LANES != 0; i++) row[i] = 0.0;
  }
  return 1;
}

/* W_kj in the place of L_kj: ``L_kj - 2 L_kj`` and what rows of others give. Vectors from `at` on,
   where only rows from `at` on have entries. */
static inline __attribute__((always_inline)) void invert_row(const LtlFactorization *ltl,
                                                             const npy_intp *nearest,
                                                             npy_intp count, double *row,
                                                             npy_intp at, const int vectors)
{
  Four sum[MAX_VECTORS];
  for (int v = 0; v < vectors; v++) sum[v] = ((const Four *)(row + at))[v];
#pragma GCC unroll 8
  for (int last = 0; last < vectors; last++) {
    npy_intp first = at + last * LANES, end = last < vectors - 1 ? first + LANES : count;
    for (npy_intp i = first; i < end; i++) { /* the nearest last: its own row is known last */
      const Four *other = (const Four *)(ltl->work + nearest[-i] * ltl->stride + at);
      for (int v = 0; v <= last; v++) sum[v] -= row[i] * other[v];
    }
  }
  for (int v = 0; v < vectors; v++) ((Four *)(row + at))[v] = sum[v];
}

/* W = L^-1, which has no entry that L has not, from the base to the tips. The second row of j
   becomes column j of W D^-1, where it is not zero. */
static inline __attribute__((always_inline)) void invert_rows(const LtlFactorization *ltl)
{
  npy_intp n = ltl->n, stride = ltl->stride;
  for (npy_intp o = 0; o < n; o++) {
    npy_intp k = ltl->order[o], count = ltl->start[k + 1] - ltl->start[k];
    const npy_intp *nearest = ltl->above + ltl->start[k] + count - 1;
    double *row = ltl->work + k * stride, *columns = ltl->work + ltl->wide;
    for (npy_intp at = 0; at <= count; at += MAX_VECTORS * LANES) {
#define INVERT_ROW(vectors) invert_row(ltl, nearest, count, row, at, vectors)
      WITH_VECTORS((count - at) / LANES + 1, INVERT_ROW)
    }
    for (npy_intp i = 0; i < count; i++) {
      npy_intp at = nearest[-i] * stride;
      columns[at + k] = row[i] * columns[at + nearest[-i]];
    }
  }
}

/* Some columns of row k of X = W' D^-1 W, in registers: vectors from `at` on. */
static inline __attribute__((always_inline)) void
multiply_row(const LtlFactorization *ltl, npy_intp k, npy_intp at, double *X, const int vectors)
{
  npy_intp n = ltl->n, stride = ltl->stride, count = ltl->start[k + 1] - ltl->start[k];
  const npy_intp *nearest = ltl->above + ltl->start[k] + count - 1;
  const double *row = ltl->work + k * stride, *columns = ltl->work + ltl->wide + at;
  Four sum[MAX_VECTORS];
  for (int v = 0; v < vectors; v++) sum[v] = (Four){0.0, 0.0, 0.0, 0.0};
  if (k < at + vectors * LANES)
    for (int v = 0; v < vectors; v++) sum[v] = ((const Four *)(columns + k * stride))[v];
  for (npy_intp i = 0; i < count && nearest[-i] < at + vectors * LANES; i++) {
    const Four *column = (const Four *)(columns + nearest[-i] * stride);
    for (int v = 0; v < vectors; v++) sum[v] += row[i] * column[v];
  }
  npy_intp left = n - at < vectors * LANES ? n - at : vectors * LANES, v = 0;
  for (; v < left / LANES; v++) ((Four *)(X + k * n + at))[v] = sum[v];
  for (npy_intp c = v * LANES; c < left; c++) X[k * n + at + c] = sum[v][c % LANES];
}

/* The mirror images of rows `first` to k, which are four, or the last. */
static inline __attribute__((always_inline)) void mirror_rows(npy_intp n, npy_intp first,
                                                              npy_intp k, double *X)
{
  npy_intp begin = first;
  const double *a = X + first * n, *b = a + n, *c = b + n, *d = c + n;
  if (k - first < LANES - 1)
    begin = 0;
  else
    for (npy_intp i = 0; i < first; i++)
      *(Four *)(X + i * n + first) = (Four){a[i], b[i], c[i], d[i]};
  for (npy_intp j = first; j <= k; j++)
    for (npy_intp i = begin; i < j; i++) X[i * n + j] = X[j * n + i];
}

CLONES("avx512f", "avx2")
int invert_ltl(const LtlFactorization *ltl, const double *H, double *X)
{
  npy_intp n = ltl->n;
  if (!factor_rows(ltl, H)) return 0;
  invert_rows(ltl);
  for (npy_intp at = 0; at < n; at += PANEL)
    for (npy_intp k = at; k < n; k++) {
#define MULTIPLY_ROW(vectors) multiply_row(ltl, k, at, X, vectors)
      npy_intp vectors = (k - at) / LANES + 1;
      WITH_VECTORS(vectors < PANEL / LANES ? vectors : PANEL / LANES, MULTIPLY_ROW)
    }
  int finite = 1;
  for (npy_intp k = 0; k < n; k++) {
    finite &= X[k * n + k] <= DBL_MAX;
    if (k % LANES == LANES - 1 || k == n - 1) mirror_rows(n, k / LANES * LANES, k, X);
  }
  return finite;
}
