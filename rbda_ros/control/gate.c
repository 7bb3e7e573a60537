#include "gate.h"

#include <math.h>

/* After a longer pause efforts may still change only as much as in this time [ns]. */
static const int64_t LONGEST_STEP = 100000000;

static double clamped(double value, double low, double high)
{
  return fmax(low, fmin(value, high));
}

/* Time since an event; 0 where the clock went back. */
static int64_t since(int64_t time, int64_t steady)
{
  return steady > time ? steady - time : 0;
}

/* Share of the efforts that the ramp lets through, 0 to 1. */
static double ramp_share(const gate_t *gate, const gate_rules_t *rules, int64_t steady)
{
  const int64_t elapsed = since(gate->ramp_began, steady);
  return elapsed < rules->ramp ? (double)elapsed / (double)rules->ramp : 1.0;
}

/* Make efforts what limit, rate and ramp allow, in place; how many were above their limit. */
static size_t shape(gate_t *gate, const gate_rules_t *rules, int64_t steady, double *efforts)
{
  const int64_t pause = gate->sent ? since(gate->time, steady) : 0;
  if (steady < gate->ramp_began) gate->ramp_began = steady; /* the clock went back */
  const double share = ramp_share(gate, rules, steady);
  const double step = rules->rate * 1e-9 * (double)(pause < LONGEST_STEP ? pause : LONGEST_STEP);
  size_t limited = 0;
  for (size_t k = 0; k < gate->count; k++) {
    const double limit = rules->limit[k], last = gate->last[k];
    if (fabs(efforts[k]) > limit) limited++;
    double effort = share * efforts[k];
    if (rules->rate > 0.0) effort = clamped(effort, last - step, last + step);
    efforts[k] = clamped(effort, -limit, limit); /* last: no other rule is above a limit */
  }
  return limited;
}

/* These efforts are sent now; NULL for zeros. */
static void track(gate_t *gate, int64_t steady, const double *efforts)
{
  gate->standing = false;
  for (size_t k = 0; k < gate->count; k++) {
    gate->last[k] = efforts == NULL ? 0.0 : efforts[k];
    gate->standing |= gate->last[k] != 0.0;
  }
  gate->time = steady;
  gate->sent = true;
}

size_t gate_pass(gate_t *gate, const gate_rules_t *rules, int64_t steady, double *efforts)
{
  const int64_t pause = gate->sent ? since(gate->time, steady) : 0;
  if (!gate->started || (rules->gap != 0 && pause > rules->gap)) gate->ramp_began = steady;
  const size_t limited = shape(gate, rules, steady, efforts);
  track(gate, steady, efforts);
  gate->started = true;
  return limited;
}

bool gate_hold(gate_t *gate, const gate_rules_t *rules, int64_t steady, double *efforts)
{
  bool changed = gate->started; /* the first one is sent in any case */
  (void)shape(gate, rules, steady, efforts);
  for (size_t k = 0; k < gate->count; k++) changed |= efforts[k] != gate->last[k];
  if (changed) track(gate, steady, efforts);
  gate->started = false;
  return changed;
}

void gate_end(gate_t *gate, int64_t steady)
{
  track(gate, steady, NULL);
  gate->started = false;
}

void gate_restart(gate_t *gate)
{
  gate->started = false;
}
