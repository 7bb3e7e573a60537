/* Results that are solved with a symmetric matrix: derivatives, and operational-space inertias. */
#include "checked_call.h"

/* What `robot/damped_inverse.py` does where a matrix is regular for sure. */
static int invert_result(const CheckedCall *call, const Branches *branches, double *const *slots)
{
  npy_intp n = branches->n;
  double *M = slots[call->mass_matrix], *inverse = slots[call->result[0].slot];
  double damping = *slots[call->arguments - 1], trace = 0.0, of_inverse = 0.0;
  memcpy(M, slots[call->result[1].slot], n * n * sizeof *M);
  for (npy_intp k = 0; k < n; k++) {
    M[k * n + k] += damping;
    trace += M[k * n + k];
  }
  if (!factor_branches(branches, M)) return 0;
  solve_branches(branches, M, NULL, 0, 1.0, inverse);
  for (npy_intp k = 0; k < n; k++) of_inverse += inverse[k * n + k];
  return 1.0 > call->least * trace * of_inverse;
}

int solve_results(const CheckedCall *call, const Branches *branches, double *const *slots)
{
  if (call->mass_matrix < 0) return 1;
  if (call->least != 0.0) return invert_result(call, branches, slots);
  double *H = slots[call->mass_matrix], *B[MOST_RESULTS];
  if (!factor_branches(branches, H)) return 0;
  int last = call->results - 1;
  for (int i = 0; i < last; i++) B[i] = slots[call->result[i].slot];
  solve_branches(branches, H, B, last, -1.0, slots[call->result[last].slot]);
  return 1;
}
