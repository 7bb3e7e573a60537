/* A message answered by a plan. Nothing here knows of Python. */
#include "plan.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "rcl/error_handling.h"

static const Py_ssize_t NUMBER = sizeof(double);
static const int64_t NEVER = -(INT64_C(1) << 62); /* a time before any other, as in rates.py */

int64_t monotonic(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

bool time_now(rcl_clock_t *clock, int64_t *now)
{
  if (rcl_clock_get_now(clock, now) == RCL_RET_OK) return true;
  rcl_reset_error();
  return false;
}

static form_t *find_form(plan_t *plan, const uint8_t *data, Py_ssize_t size)
{
  for (int k = 0; k < plan->form_count; k++)
    if (has_shape(&plan->forms[k].shape, data, size)) return &plan->forms[k];
  return NULL;
}

static void update_rate(rates_t *of, int64_t joint, double value, int64_t time, double longest)
{
  const double dt = (double)(time - of->times.at[joint]) * 1e-9, before = of->rates.at[joint];
  if (dt == 0.0) return; /* the same once more */
  const double share = -expm1(-2.0 * M_PI * of->cutoff * dt);
  const double raw = (value - of->values.at[joint]) / dt;
  const double filtered = isnan(before) ? raw : before + share * (raw - before);
  const bool known = dt >= 0.0 && dt <= longest && of->times.at[joint] != NEVER;
  of->rates.at[joint] = known ? filtered : NAN;
  of->values.at[joint] = value;
  of->times.at[joint] = time;
}

/* Keep what a message says of each joint. Python may do it again, and will find the same. */
static void keep(kept_t *kept, const form_t *form, const uint8_t *data, int64_t time)
{
  for (Py_ssize_t k = 0; k < form->order.count; k++) {
    const int64_t joint = form->target.at[k];
    const Py_ssize_t at = NUMBER * form->order.at[k];
    double position, velocity;
    memcpy(&position, data + form->position_at + at, sizeof position);
    if (kept->velocity_rates.wanted) {
      update_rate(&kept->velocity_rates, joint, position, time, kept->longest);
      velocity = kept->velocity_rates.rates.at[joint];
    } else {
      memcpy(&velocity, data + form->velocity_at + at, sizeof velocity);
    }
    if (kept->acceleration_rates.wanted)
      update_rate(&kept->acceleration_rates, joint, velocity, time, kept->longest);
    kept->position.at[joint] = position;
    kept->velocity.at[joint] = velocity;
    kept->times.at[joint] = time;
  }
}

/* Whether those joints are fresh that the plan's follow from, and no others. */
static bool still_fresh(const kept_t *kept, int64_t oldest)
{
  for (Py_ssize_t k = 0; k < kept->times.count; k++)
    if ((kept->times.at[k] >= oldest) != (kept->fresh[k] != 0)) return false;
  return true;
}

/* Give the kernel what is measured; whether it is of the joints that the kernel is for. */
static bool read_measured(plan_t *plan, form_t *form, const uint8_t *data, int64_t now,
                          int64_t time)
{
  kept_t *kept = &plan->kept;
  if (form->target.at == NULL) {
    gather(data + form->position_at, form->order, plan->position.at);
    gather(data + form->velocity_at, form->order, plan->velocity.at);
    return true;
  }
  keep(kept, form, data, time);
  const int64_t oldest = plan->timeout != 0 ? now - plan->timeout : NEVER + 1;
  if (form->partial && (kept->fresh == NULL || !still_fresh(kept, oldest))) return false;
  for (Py_ssize_t k = 0; k < kept->places.count; k++) {
    const int64_t joint = kept->places.at[k];
    plan->position.at[k] = kept->position.at[joint];
    plan->velocity.at[k] = kept->velocity.at[joint];
    if (kept->acceleration_rates.wanted)
      plan->acceleration.at[k] = kept->acceleration_rates.rates.at[joint];
  }
  return true;
}

static bool measure(plan_t *plan, form_t *form, const uint8_t *data, int64_t now, int64_t time)
{
  if (!read_measured(plan, form, data, now, time)) return false;
  const vector_t offsets = plan->kept.offsets;
  for (Py_ssize_t k = 0; k < offsets.count; k++) plan->position.at[k] += offsets.at[k];
  return true;
}

static bool somebody_listens(const message_t *message)
{
  size_t count = 0;
  if (rcl_publisher_get_subscription_count(message->publisher, &count) != RCL_RET_OK) {
    rcl_reset_error();
    return false;
  }
  return count > 0;
}

/* Efforts of the message on its joints, and none on the others; whether it has them. */
static bool take_efforts(plan_t *plan, const form_t *form, const uint8_t *data)
{
  if (form->effort_at == 0) return false;
  const vector_t to = plan->measured;
  for (Py_ssize_t k = 0; k < to.count; k++) to.at[k] = 0.0;
  bool finite = true;
  for (Py_ssize_t k = 0; k < form->effort_order.count; k++) {
    double *effort = &to.at[form->effort_target.at[k]];
    memcpy(effort, data + form->effort_at + NUMBER * form->effort_order.at[k], sizeof(double));
    finite &= isfinite(*effort) != 0;
  }
  return finite;
}

static void publish_rest(plan_t *plan, const bool *wanted, const uint8_t *like)
{
  for (int k = 1; k < plan->message_count; k++) {
    if (!wanted[k]) continue;
    if (plan->messages[k].optional && plan->completion != NULL) {
      double *const ports[] = {plan->call.q.at, plan->call.arrays[VELOCITY].at, plan->completed.at};
      plan->completion(ports);
    }
    publish(&plan->messages[k], like);
  }
}

/* The next one starts where this ended; and whoever asks for the last state gets a good one. */
static void keep_state(plan_t *plan, int64_t now)
{
  keep_guess(&plan->call);
  const vector_t parts[] = {plan->call.arrays[VELOCITY], plan->call.q, *plan_output(plan, EFFORTS)};
  last_state_put(plan->state, parts, 3, now);
}

outcome_t plan_answer(void *of, rcl_clock_t *clock, const uint8_t *data, Py_ssize_t size,
                      record_t *record)
{
  plan_t *plan = of;
  const int64_t began = monotonic(), timeout = plan->timeout;
  form_t *form = find_form(plan, data, size);
  int64_t now;
  if (form == NULL || !time_now(clock, &now)) return FOR_PYTHON;
  const int64_t stamp = stamp_of(data), time = stamp != 0 ? stamp : now;
  if (now < plan->latest - plan->jump) return FOR_PYTHON;
  if (timeout != 0 && (now - stamp > timeout || stamp - now > timeout)) {
    plan->stale++;
    plan->age = now - stamp;
    plan->latest = now;
    return COUNTED;
  }
  if (form->refused) {
    form->refusals++;
    plan->latest = now;
    return COUNTED;
  }
  if (timeout != 0 && time < form->time) return FOR_PYTHON;
  if (plan->others && timeout != 0
      && (now - plan->earliest > timeout || plan->newest - now > timeout))
    return FOR_PYTHON;
  bool wanted[MOST_MESSAGES];
  const int efforts = take_efforts(plan, form, data) ? WITH_EFFORTS : WITHOUT_EFFORTS;
  for (int k = 0; k < plan->message_count; k++) {
    const message_t *message = &plan->messages[k];
    wanted[k] = (message->when == ALWAYS || message->when == efforts)
                && (!message->optional || somebody_listens(message));
    if (wanted[k] && message->data == NULL) return FOR_PYTHON;
  }

  if (!measure(plan, form, data, now, time)) return FOR_PYTHON;
  if (!compute(&plan->call) || !publish(&plan->messages[0], data)) return FOR_PYTHON;
  keep_state(plan, now);
  form->time = time;
  plan->latest = now;
  publish_rest(plan, wanted, data);
  record->age = stamp != 0 ? (double)(now - stamp) * 1e-9 : NAN;
  memcpy(record->health, plan->call.health.at, sizeof record->health);
  record->duration = (double)(monotonic() - began) * 1e-9;
  return ANSWERED;
}
