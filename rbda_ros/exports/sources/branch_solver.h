/* Equations with a mass matrix H, in the order of engine/ltl_factorization.c but one number at a
 * time: exported code has no vectors. C99 and C++. */
#ifndef RBDA_ROS_BRANCH_SOLVER_H
#define RBDA_ROS_BRANCH_SOLVER_H

#include <float.h>
#include <stddef.h>
#include <string.h>

/* Coordinates that carry coordinate k, the nearest first, from start_above[k] to start_above[k + 1];
 * and those that it carries, the last first. */
typedef struct {
  ptrdiff_t n;
  const ptrdiff_t *start_above, *above, *start_below, *below;
} Branches;

/* One row of `work`, less multiples of others, over the diagonal entry of L. */
static inline void reduce_row(double *own, const double *work, ptrdiff_t columns,
                              const ptrdiff_t *others, ptrdiff_t count, const double *L,
                              ptrdiff_t step, double diagonal)
{
  for (ptrdiff_t a = 0; a < count; a++) {
    const double times = L[others[a] * step];
    const double *row = work + others[a] * columns;
    for (ptrdiff_t c = 0; c < columns; c++) own[c] -= times * row[c];
  }
  const double factor = 1.0 / diagonal;
  for (ptrdiff_t c = 0; c < columns; c++) own[c] *= factor;
}

/* -H^-1 B in the place of some B (n x n), and H^-1, from L of factor_by_branches. `work` has n rows
 * of (matrices + 1) n numbers. */
static inline void solve_by_branches(const Branches *of, const double *L, double *const *B,
                                     int matrices, double *work, double *inverse)
{
  const ptrdiff_t n = of->n, columns = (matrices + 1) * n;
  const size_t bytes = (size_t)n * sizeof *work;
  for (ptrdiff_t k = 0; k < n; k++) {
    double *row = work + k * columns;
    for (int m = 0; m < matrices; m++) memcpy(row + m * n, B[m] + k * n, bytes);
    memset(row + matrices * n, 0, bytes);
    row[matrices * n + k] = 1.0;
  }
  for (ptrdiff_t i = n - 1; i >= 0; i--)
    reduce_row(work + i * columns, work, columns, of->below + of->start_below[i],
               of->start_below[i + 1] - of->start_below[i], L + i, n, L[i * n + i]);
  for (ptrdiff_t k = 0; k < n; k++)
    reduce_row(work + k * columns, work, columns, of->above + of->start_above[k],
               of->start_above[k + 1] - of->start_above[k], L + k * n, 1, L[k * n + k]);
  for (ptrdiff_t k = 0; k < n; k++) {
    const double *row = work + k * columns;
    for (int m = 0; m < matrices; m++)
      for (ptrdiff_t j = 0; j < n; j++) B[m][k * n + j] = -1.0 * row[m * n + j];
    memcpy(inverse + k * n, row + matrices * n, bytes);
  }
}

/* X = H^-1 (n x n); 0 where H is singular. H is given by rows: of each coordinate, its entries with
 * those that carry it, from the base on, and with itself. H = L' D L from the tips to the base: L (n x n) has L below
 * the diagonal, and L D across from it. Then L X = D^-1 L'^-1 has D^-1 on the diagonal of its lower
 * half, from the base on. */
static inline int invert_by_branches(const Branches *of, const double *H, double *L, double *X)
{
  const ptrdiff_t n = of->n;
  for (ptrdiff_t k = n - 1; k >= 0; k--) {
    double *row = L + k * n;
    const double *own = H + of->start_above[k + 1] + k;
    for (ptrdiff_t a = of->start_above[k] - 1; a < of->start_above[k + 1]; a++) {
      const ptrdiff_t j = a < of->start_above[k] ? k : of->above[a];
      double sum = *(own - (a + 1 - of->start_above[k]));
      for (ptrdiff_t b = of->start_below[k]; b < of->start_below[k + 1]; b++)
        sum -= row[of->below[b]] * L[of->below[b] * n + j];
      row[j] = sum;
    }
    if (!(row[k] > 0.0)) return 0;
    X[k * n + k] = 1.0 / row[k];
    for (ptrdiff_t a = of->start_above[k]; a < of->start_above[k + 1]; a++) {
      const ptrdiff_t j = of->above[a];
      L[j * n + k] = row[j];
      row[j] *= X[k * n + k];
    }
  }
  for (ptrdiff_t k = 0; k < n; k++) {
    for (ptrdiff_t j = 0; j <= k; j++) {
      double sum = j == k ? X[k * n + k] : 0.0;
      for (ptrdiff_t a = of->start_above[k + 1] - 1; a >= of->start_above[k]; a--)
        sum -= L[k * n + of->above[a]] * X[of->above[a] * n + j];
      X[k * n + j] = X[j * n + k] = sum;
    }
    if (!(X[k * n + k] <= DBL_MAX)) return 0;
  }
  return 1;
}

#endif
