/* Linear equations with a mass matrix, along the ltl of its robot: `algorithms/ltl.py`
   in C. Each number is computed by the same operations in the same order, so that both give the
   same to the last bit; but many columns at a time, which stay in registers. */
#include "engine.h"

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
}

LtlFactorization *new_ltl(PyObject *parents, npy_intp n, int matrices)
{
  Indices parent = {0, NULL};
  if (!copy_indices(&parent, parents, -1, n)) return NULL;
  npy_intp pairs = 0;
  int good = parent.count == n;
  for (npy_intp k = 0; good && k < n; k++) {
    good = parent.index[k] < k;
    for (npy_intp i = parent.index[k]; good && i >= 0; i = parent.index[i]) pairs++;
  }
  npy_intp stride = (matrices * n + 2 * LANES - 1) / (2 * LANES) * (2 * LANES);
  LtlFactorization *ltl = NULL;
  if (good)
    ltl = PyMem_Calloc(1, sizeof *ltl + 2 * (n + 1 + pairs) * sizeof(npy_intp)
                              + n * stride * sizeof(double) + 64);
  if (ltl != NULL) {
    ltl->n = n;
    ltl->stride = stride;
    /* No vector lies across cache lines. */
    ltl->work = (double *)(((uintptr_t)(ltl + 1) + 63) / 64 * 64);
    ltl->start = (npy_intp *)(ltl->work + n * stride);
    ltl->start_below = ltl->start + n + 1;
    ltl->above = ltl->start_below + n + 1;
    ltl->below = ltl->above + pairs;
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
