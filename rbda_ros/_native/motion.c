/* Many positions, closed as a motion: what `LoopCloser._close_along` does, number by number. */
#include "rows.h"

static const double *known_of(const Motion *motion, const double *row, double *into)
{
    if (motion->size == motion->entries->count)
        return row;
    for (npy_intp i = 0; i < motion->entries->count; i++)
        into[i] = row[motion->entries->index[i]];
    return into;
}

static int is_near(const Motion *motion, const double *row, const double *anchor, double near)
{
    const Indices *entries = motion->entries;
    int whole = motion->size != entries->count;
    for (npy_intp i = 0; i < entries->count; i++) {
        npy_intp at = whole ? entries->index[i] : i;
        if (fabs(row[at] - anchor[at]) > near)
            return 0;
    }
    return 1;
}

int close_anchors(const Reader *reader, Motion *motion)
{
    npy_intp count = motion->count, nq = reader->nq, block = (npy_intp)reader->batch_block;
    motion->anchor = PyMem_RawMalloc(count * sizeof *motion->anchor);
    motion->q = PyMem_RawMalloc(count * nq * sizeof *motion->q);
    double *numbers = PyMem_RawMalloc((loop_numbers(reader) + nq) * sizeof *numbers);
    int good = motion->anchor != NULL && motion->q != NULL && numbers != NULL;
    const double *last = motion->guess;
    if (last == NULL)
        last = motion->size == nq ? motion->rows : reader->home;
    for (npy_intp first = 0, next = 0; good && first < count; first = next) {
        const double *row = motion->rows + first * motion->size;
        const double *known = known_of(motion, row, numbers);
        double *q = motion->q + first * nq;
        good = close_loops(reader, loop_memory(reader, numbers + nq), motion->closure,
                           motion->entries, known, last, q);
        last = q;
        for (; next < count && next < first + block; next++) {
            if (!is_near(motion, motion->rows + next * motion->size, row, reader->batch_near))
                break;
            motion->anchor[next] = first;
        }
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

/* Whether a row is closed, and not far from where it was closed from. */
static int has_arrived(const Reader *reader, const double *phi, npy_intp rows, const double *q,
                       const double *start)
{
    int good = all_within(phi, rows, reader->closed);
    const npy_intp *curved = reader->curved.index;
    for (npy_intp i = 0; i < reader->curved.count; i++)
        good &= fabs(q[curved[i]] - start[curved[i]]) <= reader->nearby;
    return good;
}

int close_rows(const Reader *reader, const Motion *motion, Share *share, npy_intp first,
               npy_intp count, double *q)
{
    const Kernel *closure = motion->closure;
    npy_intp nq = reader->nq, known = motion->entries->count, rows = closure->size[3];
    int others = 0;
    for (npy_intp k = 0; k < count; k++) {
        npy_intp anchor = motion->anchor[first + k];
        others |= anchor != first + k;
        memcpy(share->start + k * nq, motion->q + anchor * nq, nq * sizeof *q);
    }
    if (!others)
        memcpy(q, share->start, count * nq * sizeof *q);
    else {
        const double *given = motion->rows + first * motion->size;
        if (motion->size != known) {
            for (npy_intp k = 0; k < count; k++)
                known_of(motion, given + k * motion->size, share->known + k * known);
            given = share->known;
        }
        double *ports[] = {(double *)given, share->start, q, share->phi};
        closure->rows.evaluate(ports, closure->rows.constants, share->memory, count);
    }
    int good = 1;
    for (npy_intp k = 0; others && k < count; k++) {
        const double *start = share->start + k * nq;
        if (motion->anchor[first + k] == first + k)  /* closed before, by smaller steps */
            memcpy(q + k * nq, start, nq * sizeof *q);
        else
            good &= has_arrived(reader, share->phi + k * rows, rows, q + k * nq, start);
    }
    return good && normalize_rows(reader, q, count);
}
