/* Results that are solved with a symmetric matrix: derivatives, and operational-space inertias. */
#include "checked_call.h"

/* What `robot/damped_inverse.py` does where a matrix is regular for sure. */
static int invert_result(const CheckedCall *call, const Branches *branches, double *const *slots)
{
    npy_intp n = branches->n;
    double *M = slots[call->mass_matrix], *inverse = slots[call->result[0].slot];
    double damping = *slots[call->arguments - 1], trace = 0.0, of_inverse = 0.0;
    memcpy(M, slots[call->result[1].slot], n * n * sizeof *M);
    memset(inverse, 0, n * n * sizeof *inverse);
    for (npy_intp k = 0; k < n; k++) {
        M[k * n + k] += damping;
        trace += M[k * n + k];
        inverse[k * n + k] = 1.0;
    }
    if (!factor_branches(branches, M))
        return 0;
    solve_branches(branches, M, inverse, 1.0);
    for (npy_intp k = 0; k < n; k++)
        of_inverse += inverse[k * n + k];
    return 1.0 > call->least * trace * of_inverse;
}

int solve_results(const CheckedCall *call, const Branches *branches, double *const *slots)
{
    if (call->mass_matrix < 0)
        return 1;
    if (call->least != 0.0)
        return invert_result(call, branches, slots);
    npy_intp n = branches->n;
    double *H = slots[call->mass_matrix];
    if (!factor_branches(branches, H))
        return 0;
    int last = call->results - 1;
    for (int i = 0; i < last; i++)
        solve_branches(branches, H, slots[call->result[i].slot], -1.0);
    double *inverse = slots[call->result[last].slot];
    memset(inverse, 0, n * n * sizeof *inverse);
    for (npy_intp k = 0; k < n; k++)
        inverse[k * n + k] = 1.0;
    solve_branches(branches, H, inverse, 1.0);
    return 1;
}
