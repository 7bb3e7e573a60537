#include "closing.h"

#include <math.h>
#include <string.h>

void run_kernel(const kernel_t *kernel)
{
  if (kernel->code != NULL)
    kernel->code(kernel->ports);
  else
    kernel->evaluate(kernel->memory);
}

static void copy(double *to, const double *from, size_t count)
{
  if (count > 0 && to != from) memmove(to, from, sizeof(double) * count);
}

/* More Newton steps after an evaluation, while they lead nowhere far. */
static bool newton(const closing_t *of, const closing_rules_t *rules)
{
  const double *health = of->health;
  double way = 0.0;
  for (int k = 0; k < rules->repeats; k++) {
    way += health[MOVED];
    if (!(way <= rules->nearby && health[RESIDUAL] < INFINITY)) return false;
    if (health[RESIDUAL] <= rules->precise) return true;
    copy(of->guess, of->q, of->nq);
    run_kernel(of->kernel);
  }
  return health[RESIDUAL] <= rules->closed;
}

/* Move the known joints from a closed position to where they are, in some parts. */
static bool follow_in(const closing_t *of, const closing_rules_t *rules, const double *start,
                      const double *target, const double *base, int64_t parts)
{
  copy(of->guess, start, of->nq);
  for (int64_t remaining = parts - 1; remaining >= 0; remaining--) {
    copy(of->guess, base, of->base_nq);
    for (size_t k = 0; k < of->known; k++) {
      const double way = target[k] - start[of->entries[k]];
      of->position[k] = target[k] - way * ((double)remaining / (double)parts);
    }
    run_kernel(of->kernel);
    if (!newton(of, rules)) return false;
    copy(of->guess, of->q, of->nq);
  }
  return true;
}

static bool follow(const closing_t *of, const closing_rules_t *rules, const double *start,
                   const double *target, const double *base)
{
  for (size_t k = 0; k < rules->part_count; k++)
    if (follow_in(of, rules, start, target, base, rules->parts[k])) return true;
  copy(of->position, target, of->known);
  return false;
}

closing_result_t close_loops(const closing_t *of, const closing_rules_t *rules, const double *home)
{
  double *start = of->scratch, *target = start + of->nq;
  copy(start, of->guess, of->nq);
  run_kernel(of->kernel);
  if (!(of->health[INPUTS] < INFINITY)) return INPUT_NOT_FINITE;
  if (of->health[RESIDUAL] <= rules->precise && of->health[MOVED] <= rules->nearby) return CLOSED;
  if (newton(of, rules)) return CLOSED;
  copy(target, of->position, of->known);
  const double *base = start; /* a floating base is where the guess has it */
  if (follow(of, rules, start, target, base)) return CLOSED;
  if (home != NULL && follow(of, rules, home, target, base)) return CLOSED;
  copy(of->guess, start, of->nq);
  return TOO_FAR;
}
