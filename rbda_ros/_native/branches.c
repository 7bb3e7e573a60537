/* Linear equations with a mass matrix, along the branches of its robot: `algorithms/branches.py`
   in C. Each number is computed by the same operations in the same order, so that both give the
   same to the last bit; but several columns at a time, which stay in registers. */
#include "calls.h"

Branches *new_branches(PyObject *parents, npy_intp n)
{
    Indices parent = {0, NULL};
    if (!copy_indices(&parent, parents, -1, n))
        return NULL;
    npy_intp pairs = 0;
    int good = parent.count == n;
    for (npy_intp k = 0; good && k < n; k++) {
        good = parent.index[k] < k;
        for (npy_intp i = parent.index[k]; good && i >= 0; i = parent.index[i])
            pairs++;
    }
    size_t indices = 2 * n + 1 + pairs;
    Branches *branches = NULL;
    if (good)
        branches = PyMem_Calloc(1, sizeof *branches + indices * sizeof(npy_intp)
                                       + n * COLUMNS * sizeof(double) + 64);
    if (branches != NULL) {
        branches->n = n;
        /* No row lies across cache lines. */
        branches->work = (double *)(((uintptr_t)(branches + 1) + 63) / 64 * 64);
        branches->parent = (npy_intp *)(branches->work + n * COLUMNS);
        branches->start = branches->parent + n;
        branches->below = branches->start + n + 1;
        memcpy(branches->parent, parent.index, n * sizeof *parent.index);
        npy_intp *next = branches->below;
        for (npy_intp i = 0; i < n; i++) {
            branches->start[i] = next - branches->below;
            for (npy_intp k = n - 1; k > i; k--) {
                npy_intp above = k;
                while (above > i)
                    above = parent.index[above];
                if (above == i)
                    *next++ = k;
            }
        }
        branches->start[n] = next - branches->below;
    }
    PyMem_Free(parent.index);
    return branches;
}

int factor_branches(const Branches *branches, double *H)
{
    const npy_intp *parent = branches->parent, n = branches->n;
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

/* A row of columns, less multiples of others, times a number. */
#define LOAD(k) ((const Four *)(work + (k) * COLUMNS))
#define BEGIN(k) Four a = LOAD(k)[0], b = LOAD(k)[1], c = LOAD(k)[2], d = LOAD(k)[3]
#define SUBTRACT(factor, k)                                                                       \
    do {                                                                                          \
        const Four *other = LOAD(k);                                                              \
        a -= (factor) * other[0];                                                                 \
        b -= (factor) * other[1];                                                                 \
        c -= (factor) * other[2];                                                                 \
        d -= (factor) * other[3];                                                                 \
    } while (0)
#define END(k, factor)                                                                            \
    do {                                                                                          \
        Four *own = (Four *)(work + (k) * COLUMNS);                                               \
        own[0] = a * (factor);                                                                    \
        own[1] = b * (factor);                                                                    \
        own[2] = c * (factor);                                                                    \
        own[3] = d * (factor);                                                                    \
    } while (0)

/* Some columns in `work`: L' Z = B, then L X = Z. */
WIDE static void solve_columns(const Branches *branches, const double *L)
{
    npy_intp n = branches->n;
    double *work = branches->work;
    for (npy_intp i = n - 1; i >= 0; i--) {
        BEGIN(i);
        for (npy_intp at = branches->start[i]; at < branches->start[i + 1]; at++)
            SUBTRACT(L[branches->below[at] * n + i], branches->below[at]);
        END(i, 1.0 / L[i * n + i]);
    }
    for (npy_intp k = 0; k < n; k++) {
        BEGIN(k);
        for (npy_intp i = branches->parent[k]; i >= 0; i = branches->parent[i])
            SUBTRACT(L[k * n + i], i);
        END(k, 1.0 / L[k * n + k]);
    }
}

void solve_branches(const Branches *branches, const double *L, double *B, double sign)
{
    npy_intp n = branches->n;
    for (npy_intp first = 0; first < n; first += COLUMNS) {
        npy_intp columns = n - first < COLUMNS ? n - first : COLUMNS;
        for (npy_intp k = 0; k < n; k++)
            memcpy(branches->work + k * COLUMNS, B + k * n + first, columns * sizeof *B);
        solve_columns(branches, L);
        for (npy_intp k = 0; k < n; k++)
            for (npy_intp j = 0; j < columns; j++)
                B[k * n + first + j] = sign * branches->work[k * COLUMNS + j];
    }
}
