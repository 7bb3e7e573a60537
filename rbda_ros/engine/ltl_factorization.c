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
  if (matrices == 1) stride = 2 * wide + 2 * LANES;
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

/* The inverse has three rows of the work side by side for each coordinate. In the first two are
   entries of all coordinates that carry it, from the base on, and its own. As what carries j comes
   first in the row of k too, rows are subtracted from each other as they are, in whole vectors. The
   third has D^-1, and what lies across from four rows of the inverse. Numbers that were written one
   by one are read as vectors only much later: the processor would have to wait. */

/* Call a function with a number of vectors, 1 to 8, that the compiler knows: in registers. */
#define VECTORS(number, call)                                                                      \
  case number:                                                                                     \
    call(number);                                                                                  \
    break;
#define WITH_VECTORS(vectors, call)                                                                \
  switch (vectors) {                                                                               \
    VECTORS(1, call)                                                                               \
    VECTORS(2, call)                                                                               \
    VECTORS(3, call)                                                                               \
    VECTORS(4, call)                                                                               \
    VECTORS(5, call)                                                                               \
    VECTORS(6, call)                                                                               \
    VECTORS(7, call)                                                                               \
  default:                                                                                         \
    call(8);                                                                                       \
  }

/* Row k of L D: of H, less what those give that k carries, the last first. Vectors from `at` on, of a
   coordinate that so many carry. */
static inline __attribute__((always_inline)) void gather_row(const LtlFactorization *ltl,
                                                             npy_intp k, npy_intp depth,
                                                             npy_intp at, const double *H,
                                                             const int vectors)
{
  const npy_intp *below = ltl->below + ltl->start_below[k], stride = ltl->stride;
  const npy_intp count = ltl->start_below[k + 1] - ltl->start_below[k];
  double *scaled = ltl->work + at, *unscaled = ltl->work + ltl->wide;
  Four sum[MAX_VECTORS];
  for (int v = 0; v < vectors; v++) sum[v] = ((const Four *)(H + at))[v];
  for (npy_intp i = 0; i < count; i++) {
    const Four *other = (const Four *)(scaled + below[i] * stride);
    double times = unscaled[below[i] * stride + depth];
    for (int v = 0; v < vectors; v++) sum[v] -= times * other[v];
  }
  for (int v = 0; v < vectors; v++) ((Four *)(unscaled + k * stride + at))[v] = sum[v];
}

/* H = L' D L, from the tips to the base: the first rows become L, the second L D. 0 where H is
   singular. */
static inline __attribute__((always_inline)) int factor_rows(const LtlFactorization *ltl,
                                                             const double *H)
{
  npy_intp n = ltl->n, stride = ltl->stride, wide = ltl->wide;
  for (npy_intp o = n - 1; o >= 0; o--) {
    npy_intp k = ltl->order[o], count = ltl->start[k + 1] - ltl->start[k];
    double *row = ltl->work + k * stride, *unscaled = row + wide;
    for (npy_intp at = 0; at <= count; at += MAX_VECTORS * LANES) {
#define GATHER_ROW(vectors) gather_row(ltl, k, count, at, H + ltl->start[k] + k, vectors)
      WITH_VECTORS((count - at) / LANES + 1, GATHER_ROW)
    }
    if (!(unscaled[count] > 0.0)) return 0;
    double inverse = 1.0 / unscaled[count];
    for (npy_intp v = 0; v <= count / LANES; v++)
      ((Four *)row)[v] = ((const Four *)unscaled)[v] * inverse;
    row[2 * wide] = inverse;
  }
  return 1;
}

/* Some columns of row k of X: less multiples of the rows of those that carry k. Vectors from `at`
   on. */
static inline __attribute__((always_inline)) void
spread_row(const LtlFactorization *ltl, npy_intp k, npy_intp at, double *X, const int vectors)
{
  npy_intp n = ltl->n, count = ltl->start[k + 1] - ltl->start[k];
  const npy_intp *nearest = ltl->above + ltl->start[k] + count - 1;
  const double *row = ltl->work + k * ltl->stride;
  Four sum[MAX_VECTORS];
  for (int v = 0; v < vectors; v++) sum[v] = (Four){0.0, 0.0, 0.0, 0.0};
  for (npy_intp i = 0; i < count; i++) {
    const Four *other = (const Four *)(X + nearest[-i] * n + at);
    for (int v = 0; v < vectors; v++) sum[v] -= row[i] * other[v];
  }
  for (int v = 0; v < vectors; v++) ((Four *)(X + k * n + at))[v] = sum[v];
}

/* The mirror images of four rows from `first` on, or of fewer, which are the last; once more in the
   work. */
static inline __attribute__((always_inline)) void
mirror_rows(const LtlFactorization *ltl, npy_intp first, npy_intp rows, double *X)
{
  npy_intp n = ltl->n;
  const double *a = X + first * n, *b = rows > 1 ? a + n : a, *c = rows > 2 ? b + n : b,
               *d = rows > 3 ? c + n : c;
  for (npy_intp i = 0; i < first; i++) {
    const Four across = {a[i], b[i], c[i], d[i]};
    *(Four *)(ltl->work + i * ltl->stride + 2 * ltl->wide + LANES) = across;
    if (rows == LANES)
      *(Four *)(X + i * n + first) = across;
    else
      for (npy_intp j = 0; j < rows; j++) X[i * n + first + j] = across[j];
  }
}

/* Row k of the square on the diagonal, from what lies between it and the base; and L in the square. */
static inline __attribute__((always_inline)) void
begin_square(const LtlFactorization *ltl, npy_intp first, npy_intp k, double *L, Four *square)
{
  static const Four units[LANES] = {{1.0}, {0.0, 1.0}, {0.0, 0.0, 1.0}, {0.0, 0.0, 0.0, 1.0}};
  npy_intp stride = ltl->stride, at = ltl->start[k], count = ltl->start[k + 1] - at, i = 0;
  const npy_intp *nearest = ltl->above + at + count - 1;
  const double *row = ltl->work + k * stride, *across = ltl->work + 2 * ltl->wide + LANES;
  Four sum = units[k - first] * row[2 * ltl->wide];
  for (; i < count && nearest[-i] < first; i++)
    sum -= row[i] * *(const Four *)(across + nearest[-i] * stride);
  for (; i < count; i++) L[nearest[-i] - first] = row[i];
  *square = sum;
}

/* The square of X on the diagonal, where those rows cross: all numbers stay in registers. */
static inline __attribute__((always_inline)) void
fill_square(const LtlFactorization *ltl, npy_intp first, npy_intp rows, double *X)
{
  double square[LANES][LANES] = {{0.0}};
  double L[LANES][LANES] = {{0.0}};
  for (npy_intp k = 0; k < rows; k++) begin_square(ltl, first, first + k, L[k], (Four *)square[k]);
#pragma GCC unroll 4
  for (int k = 0; k < LANES; k++) {
#pragma GCC unroll 4
    for (int j = 0; j <= k; j++) {
      double entry = square[k][j];
#pragma GCC unroll 4
      for (int l = 0; l < k; l++) entry -= L[k][l] * square[l][j];
      square[k][j] = square[j][k] = entry;
    }
  }
  if (rows == LANES)
    for (int k = 0; k < LANES; k++)
      *(Four *)(X + (first + k) * ltl->n + first) =
          (Four){square[k][0], square[k][1], square[k][2], square[k][3]};
  else
    for (npy_intp k = 0; k < rows; k++)
      for (npy_intp j = 0; j < rows; j++) X[(first + k) * ltl->n + first + j] = square[k][j];
}

/* As ``L X = D^-1 L'^-1``, whose lower half is D^-1, row k of X up to its diagonal follows from the
   rows of those that carry k. */
CLONES("avx512f", "avx2")
int invert_ltl(const LtlFactorization *ltl, const double *H, double *X)
{
  npy_intp n = ltl->n;
  if (!factor_rows(ltl, H)) return 0;
  for (npy_intp first = 0; first < n; first += LANES) {
    npy_intp rows = n - first < LANES ? n - first : LANES;
    for (npy_intp k = first; k < first + rows; k++)
      for (npy_intp at = 0; at < first; at += MAX_VECTORS * LANES) {
#define SPREAD_ROW(vectors) spread_row(ltl, k, at, X, vectors)
        WITH_VECTORS((first - at) / LANES, SPREAD_ROW)
      }
    mirror_rows(ltl, first, rows, X);
    fill_square(ltl, first, rows, X);
  }
  int finite = 1;
  for (npy_intp k = 0; k < n; k++) finite &= X[k * n + k] <= DBL_MAX;
  return finite;
}
