/* The continuation by which loops are closed where one step does not arrive: known entries of q move
   from a closed position to where they are, in more and more parts. Methods of `Robot` (closing of
   a position, loop_rules.h), the stream (a kernel that computes efforts too, closing.c) and
   exported code use it. C99 and C++. */
#ifndef RBDA_ROS_CONTINUATION_H
#define RBDA_ROS_CONTINUATION_H

#include <stddef.h>
#include <string.h>

typedef struct {
  const ptrdiff_t *entries; /* of q that are known */
  const ptrdiff_t *parts;   /* in how many parts to move them, one try after another */
  ptrdiff_t known, tries, nq;
  /* Closes the loops for `known`, from q into q: 1; 0 where they stay open; -1 to give up. */
  int (*close)(void *context);
  void *context;
} Continuation;

/* From `start` (nq) to where known entries of q are `values`; what `close` gave last. */
static inline int continue_closing(const Continuation *of, const double *values,
                                   const double *start, double *known, double *q)
{
  int closed = 0;
  for (ptrdiff_t k = 0; closed == 0 && k < of->tries; k++) {
    const ptrdiff_t parts = of->parts[k];
    closed = 1;
    memmove(q, start, (size_t)of->nq * sizeof *q);
    for (ptrdiff_t remaining = parts - 1; closed == 1 && remaining >= 0; remaining--) {
      const double left = (double)remaining / (double)parts;
      for (ptrdiff_t i = 0; i < of->known; i++)
        known[i] = values[i] - (values[i] - start[of->entries[i]]) * left;
      closed = of->close(of->context);
    }
  }
  return closed;
}

#endif
