#include "closing.h"

#include "continuation.h"

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

typedef struct {
  const closing_t *of;
  const closing_rules_t *rules;
  const double *base;
} part_t;

static int close_part_of_way(void *context)
{
  const part_t *part = (const part_t *)context;
  const closing_t *of = part->of;
  copy(of->guess, part->base, of->base_nq);
  run_kernel(of->kernel);
  if (!newton(of, part->rules)) return 0;
  copy(of->guess, of->q, of->nq);
  return 1;
}

/* Move the known joints from a closed position to where they are. */
static bool follow(const closing_t *of, const closing_rules_t *rules, const double *start,
                   const double *target, const double *base)
{
  part_t part;
  Continuation way;
  part.of = of;
  part.rules = rules;
  part.base = base;
  way.entries = of->entries;
  way.parts = rules->parts;
  way.known = (ptrdiff_t)of->known;
  way.tries = (ptrdiff_t)rules->part_count;
  way.nq = (ptrdiff_t)of->nq;
  way.close = close_part_of_way;
  way.context = &part;
  if (continue_closing(&way, target, start, of->position, of->guess) == 1) return true;
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

closing_result_t judge_health(const double *health, double closed, double max_condition)
{
  if (!(health[INPUTS] < INFINITY)) return INPUT_NOT_FINITE;
  if (!(health[RESIDUAL] <= closed)) return TOO_FAR;
  if (!(health[CONDITIONING] * max_condition >= 1.0)) return AT_DEAD_POINT;
  return health[EFFORTS_SQUARED] < INFINITY ? CLOSED : EFFORT_NOT_FINITE;
}

closing_result_t judge_command(const double *health, double max_condition, double cannot_give)
{
  const closing_result_t result = judge_health(health, INFINITY, max_condition);
  if (result != CLOSED || health[MISSED] <= cannot_give * health[FORCE]) return result;
  return MOTORS_CANNOT;
}
