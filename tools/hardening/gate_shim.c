/* The gate as a library of plain functions, for `gate_mutants.py`: compiled beside a gate.c. */
#include "gate.c"

#include <stdlib.h>

gate_t *shim_make(void)
{
  return calloc(1, sizeof(gate_t));
}

void shim_free(gate_t *gate)
{
  free(gate->last);
  free(gate);
}

/* Another robot: its motors, and what was last sent to each. */
void shim_use(gate_t *gate, size_t count, const double *last)
{
  free(gate->last);
  gate->last = malloc((count + 1) * sizeof(double));
  for (size_t k = 0; k < count; k++) gate->last[k] = last[k];
  gate->count = count;
}

void shim_send(gate_t *gate, const double *limit, double rate, int64_t ramp, int64_t gap,
               int64_t steady, double *efforts)
{
  const gate_rules_t rules = {.limit = limit, .rate = rate, .ramp = ramp, .gap = gap};
  gate_pass(gate, &rules, steady, efforts);
}

bool shim_hold(gate_t *gate, const double *limit, double rate, int64_t ramp, int64_t gap,
               int64_t steady, double *efforts)
{
  const gate_rules_t rules = {.limit = limit, .rate = rate, .ramp = ramp, .gap = gap};
  return gate_hold(gate, &rules, steady, efforts);
}

void shim_end(gate_t *gate, int64_t steady)
{
  gate_end(gate, steady);
}

void shim_restart(gate_t *gate)
{
  gate_restart(gate);
}
