/* Closing loops by the closure kernel of some joints. `robot_` and `ROBOT_` become the name of the
 * library; its macros and tables come before. */

/* The position q whose `entries` (known) are `values`, from `start`, by a kernel whose residual has
 * so many rows. `known_now` (known), `next` (nq) and `phi` (rows) are scratch. */
static inline Status robot_close_from(robot_workspace *w,
                                      int (*evaluate)(const void *, double *const *),
                                      const ptrdiff_t *entries, ptrdiff_t known, ptrdiff_t rows,
                                      const double *values, const double *start, double *known_now,
                                      double *next, double *phi, double *q)
{
  ClosureRules rules;
  rules.evaluate = evaluate;
  rules.kernel = &w->evaluations;
  rules.entries = entries;
  rules.curved = robot_curved;
  rules.parts = robot_parts;
  rules.known = known;
  rules.curves = ROBOT_CURVES;
  rules.tries = ROBOT_PARTS;
  rules.nq = ROBOT_NQ;
  rules.rows = rows;
  rules.closed = ROBOT_CLOSED;
  rules.nearby = ROBOT_NEARBY;
  const Status status = close_in_parts(&rules, values, start, known_now, next, phi, q);
  return status == GOOD && !robot_normalize(q) ? NOT_CLOSED : status;
}
