/* Linear equations with a mass matrix, along the branches of its robot: `algorithms/branches.py`
   in C, operation by operation, so that both give the same to the last bit. */
#include "calls.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__gnu_linux__) \
    && !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

/* row -= factor * other */
WIDE static void subtract(double *restrict row, const double *restrict other, double factor,
                          npy_intp count)
{
    for (npy_intp j = 0; j < count; j++)
        row[j] -= factor * other[j];
}

static void divide(double *row, double divisor, npy_intp count)
{
    for (npy_intp j = 0; j < count; j++)
        row[j] /= divisor;
}

int factor_branches(const npy_intp *parent, npy_intp n, double *H)
{
    for (npy_intp k = n - 1; k >= 0; k--) {
        double *row = H + k * n;
        if (!(row[k] > 0.0))
            return 0;
        row[k] = sqrt(row[k]);
        for (npy_intp i = parent[k]; i >= 0; i = parent[i])
            row[i] /= row[k];
        for (npy_intp i = parent[k]; i >= 0; i = parent[i])
            for (npy_intp j = i; j >= 0; j = parent[j])
                H[i * n + j] -= row[i] * row[j];
    }
    return 1;
}

void solve_branches(const npy_intp *parent, npy_intp n, const double *L, double *B)
{
    for (npy_intp k = n - 1; k >= 0; k--) {
        divide(B + k * n, L[k * n + k], n);
        for (npy_intp i = parent[k]; i >= 0; i = parent[i])
            subtract(B + i * n, B + k * n, L[k * n + i], n);
    }
    for (npy_intp k = 0; k < n; k++) {
        for (npy_intp i = parent[k]; i >= 0; i = parent[i])
            subtract(B + k * n, B + i * n, L[k * n + i], n);
        divide(B + k * n, L[k * n + k], n);
    }
}
