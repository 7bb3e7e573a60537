/* The gate: the last stage before every topic that a motor may listen to.
 *
 * Its promises, for whatever efforts come in (see docs/safety.md):
 *   1. No effort is above the limit in force.
 *   2. No effort changes faster than the rate limit, counted from what was last sent on the same
 *      topic, whoever sent it and whether or not a limit was on then; except to obey 1, and except
 *      for the zeros that end a stream.
 *   3. After a start (activation, another robot, a gap) efforts grow from zero during the ramp. */
#ifndef RBDA_ROS_GATE_H
#define RBDA_ROS_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  const double *limit; /* (count) largest effort of each motor; infinite for none [N m, N] */
  double rate;         /* fastest change [N m/s, N/s]; 0 for any */
  int64_t ramp;        /* how long efforts grow from zero [ns]; 0 for not at all */
  int64_t gap;         /* pause after which the ramp begins again [ns]; 0 for never */
} gate_rules_t;

/* Parameters of the node that set a rule: NUMBER as it is, TIME from seconds to ns. A configuration
 * is read by this list. */
#define GATE_PARAMETERS(NUMBER, TIME)                                                              \
  NUMBER(effort_rate_limit, rate)                                                                  \
  TIME(ramp_in, ramp)

/* What was sent on one topic. */
typedef struct {
  double *last; /* (count) the last efforts; zero before the first */
  size_t count;
  int64_t time; /* when they were sent, by the steady clock [ns] */
  int64_t ramp_began;
  bool sent;     /* false before the first message: it starts from zero, now */
  bool started;  /* false: the next effort begins a ramp */
  bool standing; /* whether the last message was something other than zeros */
} gate_t;

/* Make efforts (count) what may be sent at a steady time [ns], in place; how many were above their
 * limit. They count as sent. */
size_t gate_pass(gate_t *gate, const gate_rules_t *rules, int64_t steady, double *efforts);
/* The same for efforts that stand for a while after the inputs stopped: the ramp goes on as it was,
 * and the next effort begins another. Whether to send them: the first, and those that differ from
 * the last. */
bool gate_hold(gate_t *gate, const gate_rules_t *rules, int64_t steady, double *efforts);
/* Zeros were sent, which end the stream: the next effort begins a ramp. */
void gate_end(gate_t *gate, int64_t steady);
/* Have the next effort begin a ramp. */
void gate_restart(gate_t *gate);

#endif
