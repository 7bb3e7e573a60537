/* The force on y that comes from outside: the momentum observer of De Luca 2003.
 *
 * With p = H yd the estimate r follows dr/dt = gain (external - r):
 *   r = gain (p - p0 - integral of (tau - friction + Hdot yd - C + r) dt),
 * by implicit steps, which are stable at any gain and interval. */
#include "../engine/observer_step.h"
#include "machine.h"

#include <math.h>
#include <string.h>

/* A pause counts as a gap when it is this many times as long as the last, and this much longer. */
static const int64_t LONGER = 4, SLACK = 20000000, LONGEST = 1000000000;
/* How old efforts may be where nothing else says so [ns]. */
static const int64_t OLDEST_EFFORT = INT64_C(10000000000);

/* Efforts on every coordinate: of the motors, or else of the independent joints. */
static code_t measured_efforts(machine_t *m, int64_t time, double *spanning)
{
  const state_t *s = m->state;
  const model_t *model = &m->config->model;
  const int64_t timeout = m->config->settings.joint_state_timeout;
  const int64_t oldest = time - (timeout != 0 ? timeout : OLDEST_EFFORT);
  const int32_t *const choices[] = {model->actuated_joints, model->independent_joints};
  const int counts[] = {model->actuated, model->independent};
  for (int choice = 0; choice < 2; choice++) {
    bool known = counts[choice] > 0;
    for (int k = 0; k < counts[choice]; k++)
      known = known && s->effort_time[choices[choice][k]] >= oldest;
    if (!known) continue;
    memset(spanning, 0, sizeof(double) * (size_t)s->nv);
    for (int k = 0; k < counts[choice]; k++) {
      const int joint = choices[choice][k];
      spanning[model->coordinates[joint]] = s->effort[joint];
    }
    return ACCEPTED;
  }
  return NO_EFFORT;
}

/* One step of the observer, to a time. */
static void advance(machine_t *m, const double *p, const double *drive, int64_t time)
{
  state_t *s = m->state;
  const double gain = m->config->settings.observer_gain;
  const int64_t pause = s->observer_time == NEVER ? 0 : time - s->observer_time;
  const bool gap =
      pause > LONGEST || (s->observer_period != 0 && pause > LONGER * s->observer_period + SLACK);
  observer_step((size_t)s->ny, p, drive, gain, (double)pause * 1e-9, !s->observing || gap,
                s->integral, s->drive, s->external);
  if (s->observing && !gap) s->observer_period = pause;
  s->observing = true;
  s->observer_time = time;
}

/* The wrench on a link that explains the estimate best, in its frame and at its origin. */
static void send_wrench(machine_t *m, const sink_t *sink, int64_t stamp)
{
  const state_t *s = m->state;
  const observer_t *observer = m->config->observer;
  const kernel_t *jacobian = &observer->jacobian, *pose = &observer->pose;
  const size_t bytes = sizeof(double) * (size_t)s->nq;
  memcpy(jacobian->ports[0], s->q, bytes);
  memcpy(pose->ports[0], s->q, bytes);
  run_kernel(jacobian);
  run_kernel(pose);
  double world[6], link[6];
  const int rows = s->ny < 6 ? 3 : 6;
  observer_wrench(jacobian->ports[1], rows, s->ny, s->external, m->config->scratch, world);
  const double *T = pose->ports[1], *p = observer->point;
  for (int i = 0; i < 3; i++) {
    link[i] = link[3 + i] = 0.0;
    for (int j = 0; j < 3; j++) {
      link[i] += T[4 * j + i] * world[j];
      link[3 + i] += T[4 * j + i] * world[3 + j];
    }
  }
  link[3] += p[1] * link[2] - p[2] * link[1];
  link[4] += p[2] * link[0] - p[0] * link[2];
  link[5] += p[0] * link[1] - p[1] * link[0];
  for (int k = 0; k < 6; k++)
    if (!isfinite(link[k])) return;
  const double *const fields[] = {link, NULL, NULL};
  emit_fields(sink, ESTIMATED_WRENCH, &m->config->outputs.wrench, fields, stamp);
}

code_t observe(machine_t *m, const sink_t *sink, const layout_t *layout, const joint_state_t *state,
               int64_t time)
{
  state_t *s = m->state;
  const config_t *config = m->config;
  const observer_t *observer = config->observer;
  if (state->effort.count > 0 && state->effort.count != (size_t)layout->count) return WRONG_SIZE;
  const code_t code = measured_efforts(m, time, observer->force.ports[1]);
  if (code != ACCEPTED) return code;
  if (time < s->observer_time - JUMP) { /* stamps begin anew, as when a recording is played again */
    s->observing = false;
    s->observer_time = NEVER;
    s->observer_period = 0;
    memset(s->external, 0, sizeof(double) * (size_t)s->ny);
  }
  if (time <= s->observer_time) return ACCEPTED; /* another part of the same state */
  const size_t positions = sizeof(double) * (size_t)s->nq, ny = (size_t)s->ny;
  memcpy(observer->force.ports[0], s->q, positions);
  memcpy(observer->friction.ports[0], s->q, positions);
  memcpy(observer->momentum.ports[0], s->q, positions);
  for (size_t k = 0; k < ny; k++) {
    const double yd = s->qd[config->model.y_coordinates[k]];
    observer->friction.ports[1][k] = observer->momentum.ports[1][k] = yd;
  }
  run_kernel(&observer->force);
  run_kernel(&observer->friction);
  run_kernel(&observer->momentum);
  const double *force = observer->force.ports[2], *friction = observer->friction.ports[2];
  const double *p = observer->momentum.ports[2], *unforced = observer->momentum.ports[3];
  double *drive = config->scratch;
  for (size_t k = 0; k < ny; k++) {
    drive[k] = (force[k] - friction[k]) + unforced[k];
    if (!isfinite(drive[k]) || !isfinite(p[k])) return NOT_FINITE;
  }
  advance(m, p, drive, time);
  s->largest_external = 0.0;
  for (size_t k = (size_t)s->base_nv; k < ny; k++)
    s->largest_external = fmax(s->largest_external, fabs(s->external[k]));
  const double *const fields[] = {NULL, NULL, s->external + s->base_nv};
  emit_fields(sink, EXTERNAL_EFFORT, &m->config->outputs.external, fields, state->stamp);
  if (observer->wrench) send_wrench(m, sink, state->stamp);
  return ACCEPTED;
}
